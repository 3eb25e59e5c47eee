/* worker/arguments.c -- see arguments.h. */
#include "worker/arguments.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/shape.h"
#include "worker/tensors.h"

/* Of the largest pages in use, those of aarch64. */
enum { PAGE = 1 << 16 };

/* Memory between two pages that cannot be touched. */
typedef struct run_region {
    char *base;  /* of the first page; NULL: none */
    size_t size; /* in all */
} region;

/* ---- memory ---- */

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *new_region(run_arguments *a, size_t bytes, tec_error *err)
{
    size_t inside = pages(bytes ? bytes : 1), all = inside + 2 * PAGE;
    char *base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (base == MAP_FAILED || mprotect(base + PAGE, inside, PROT_READ | PROT_WRITE) != 0) {
        if (base != MAP_FAILED)
            munmap(base, all);
        return rt_fail_memory(err, bytes), NULL;
    }
    a->regions[a->n_regions++] = (region){base, all};
    return base + PAGE;
}

static bool make_read_only(const DLTensor *t)
{
    return mprotect(t->data, pages((size_t)tec_tensor_bytes(t)), PROT_READ) == 0;
}

static void clear(run_arguments *a)
{
    for (int i = 0; i < a->n_regions; i++)
        munmap(a->regions[i].base, a->regions[i].size);
    rt_arena_free(&a->arena);
    *a = (run_arguments){0};
}

/* ---- making ---- */

static bool read_symbols(const rt_function_desc *f, const run_job *j, int64_t *symbols, tec_error *err)
{
    for (int s = 0; s < f->n_symbols; s++) {
        int k = 0;

        while (k < j->n_dims && strcmp(j->dims[k].name, f->symbols[s]) != 0)
            k++;
        if (k == j->n_dims)
            return rt_fail(err, TEC_INVALID, "%s: symbol '%s' has no value to measure with", f->name,
                           f->symbols[s]);
        symbols[s] = j->dims[k].value;
    }
    return true;
}

static DLTensor *new_tensor(run_arguments *a, DLDataType dtype, int rank, tec_error *err)
{
    DLTensor *t = rt_arena_alloc(&a->arena, 1, sizeof *t, err);
    int64_t *shape = rt_arena_alloc(&a->arena, rank, sizeof *shape, err);

    if (!t || !shape)
        return NULL;
    *t = (DLTensor){.device = {kDLCPU, 0}, .dtype = dtype, .ndim = rank, .shape = shape};
    return t;
}

static DLTensor *like(run_arguments *a, const DLTensor *of, tec_error *err)
{
    DLTensor *t = new_tensor(a, of->dtype, of->ndim, err);

    if (!t)
        return NULL;
    memcpy(t->shape, of->shape, (size_t)of->ndim * sizeof *t->shape);
    t->data = new_region(a, (size_t)tec_tensor_bytes(t), err);
    return t->data ? t : NULL;
}

/* Compact, whatever the parameter asks for: of all candidates of a task the arguments are the same. */
static DLTensor *new_argument(run_arguments *a, const rt_param_desc *p, const int64_t *symbols,
                              tec_error *err)
{
    DLTensor *t = new_tensor(a, p->dtype, p->rank, err);

    if (!t || !rt_shape_eval(p->shape, p->rank, symbols, t->shape, p->name, err))
        return NULL;
    if (tec_tensor_bytes(t) < 0)
        return rt_fail(err, TEC_INVALID, "parameter '%s' does not fit into memory", p->name), NULL;
    t->data = new_region(a, (size_t)tec_tensor_bytes(t), err);
    return t->data ? t : NULL;
}

/* Tensors for every parameter with the job's sizes. Inputs are random from the seed and then protected: a
 * kernel that writes to one ends the process, which is the candidate's failure. */
static bool make(run_arguments *a, const rt_function_desc *f, const run_job *j, tec_error *err)
{
    int64_t symbols[RT_MAX_SYMBOLS];

    *a = (run_arguments){.key = j->arguments, .seed = j->seed, .n = f->n_params};
    a->args = rt_arena_alloc(&a->arena, f->n_params, sizeof(DLTensor *), err);
    a->kept = rt_arena_alloc(&a->arena, f->n_params, sizeof(DLTensor *), err);
    a->is_output = rt_arena_alloc(&a->arena, f->n_params, sizeof(bool), err);
    a->regions = rt_arena_alloc(&a->arena, 2 * f->n_params, sizeof(region), err);
    if (!a->args || !a->kept || !a->is_output || !a->regions || !read_symbols(f, j, symbols, err))
        return false;
    for (int i = 0; i < f->n_params; i++) {
        a->args[i] = new_argument(a, &f->params[i], symbols, err);
        a->is_output[i] = f->params[i].is_output;
        if (!a->args[i])
            return false;
        if (a->is_output[i])
            continue;
        run_fill_random(a->args[i], j->seed + (uint64_t)i);
        if (!make_read_only(a->args[i]))
            return rt_fail(err, TEC_INTERNAL, "the inputs cannot be protected against writing");
    }
    return true;
}

/* Arguments of recent jobs are kept on a shelf by their key; the one that was unused for longest gives way.
 */
run_arguments *run_arguments_for(run_shelf *shelf, const rt_function_desc *f, const run_job *j,
                                 tec_error *err)
{
    run_arguments *oldest = &shelf->slot[0];

    for (int i = 0; i < RUN_SHELF; i++) {
        run_arguments *a = &shelf->slot[i];

        if (a->used && a->key == j->arguments && a->seed == j->seed && a->n == f->n_params) {
            a->used = ++shelf->clock;
            return a;
        }
        if (a->used < oldest->used)
            oldest = a;
    }
    clear(oldest);
    if (make(oldest, f, j, err)) {
        oldest->used = ++shelf->clock;
        return oldest;
    }
    clear(oldest);
    return NULL;
}

void run_shelf_clear(run_shelf *shelf)
{
    for (int i = 0; i < RUN_SHELF; i++)
        clear(&shelf->slot[i]);
}

/* ---- outputs ---- */

void run_arguments_blank(run_arguments *a, int byte)
{
    for (int i = 0; i < a->n; i++)
        if (a->is_output[i])
            memset(a->args[i]->data, byte, (size_t)tec_tensor_bytes(a->args[i]));
}

/* What the outputs hold now becomes the reference that later runs are compared with. */
bool run_arguments_keep(run_arguments *a, tec_error *err)
{
    for (int i = 0; i < a->n && !a->has_kept; i++)
        if (a->is_output[i] && !a->kept[i] && !(a->kept[i] = like(a, a->args[i], err)))
            return false;
    for (int i = 0; i < a->n && !a->has_kept; i++) {
        if (!a->is_output[i])
            continue;
        memcpy(a->kept[i]->data, a->args[i]->data, (size_t)tec_tensor_bytes(a->args[i]));
        if (!make_read_only(a->kept[i]))
            return rt_fail(err, TEC_INTERNAL, "the outputs cannot be protected against writing");
    }
    a->has_kept = true;
    return true;
}

bool run_arguments_check(const run_arguments *a, const rt_function_desc *f, char *text, size_t size)
{
    char what[400];

    for (int i = 0; i < a->n; i++)
        if (a->is_output[i] && !run_compare(a->args[i], a->kept[i], what, sizeof what)) {
            snprintf(text, size, "output '%s' %s", f->params[i].name, what);
            return false;
        }
    return true;
}
