/* jobs/find.h -- the tasks of a file: what of a model, or of a file of definitions, a tuner can make faster.
 *
 *     job_source from = {.path = "resnet.onnx", .target = t, .dims = &(onnx_dim){"batch", 1}, .n_dims = 1};
 *     job_tasks tasks;
 *     if (!job_find_tasks(cx, &from, &tasks)) puts(tec_context_error(cx));
 *
 * A name that ends in ".te" is a file of definitions, one that ends in ".tecp" is a program,
 * any other is an ONNX model.
 * Lifetime: the context's; the target must stay. Errors: in the context, with the file's name. Messages name
 * options as the programs `tec tune` and `tvmtune submit` call them (--dim, --name, --schedule). Threads: one
 * context, one thread.
 */
#ifndef JOBS_FIND_H
#define JOBS_FIND_H

#include "autotune/task.h"
#include "graph/onnx/onnx.h"
#include "lang/lang.h"

/* A symbol that stays one: its kernels are tuned for all extents of the range; or, where the range lists
 * values, each gets a version for each of them, in which the symbol is that number. */
typedef struct {
    const char *name;
    tune_range range;
} job_range;

/* A kernel with versions for values of one of its symbols. */
typedef struct {
    const tune_task *kernel; /* with the symbol: no task itself */
    int symbol;
    const tune_range *range;
    const int *task; /* [range->n_values] numbers of tasks; -1: not wanted */
} job_versions;

typedef struct {
    const char *path;
    const target *target;
    const onnx_dim *dims; /* values of symbolic dimensions; a name that the file does not have is an error */
    int n_dims;
    /* becomes true where a name of `dims` or `ranges` is none of the file's; NULL: nobody asks */
    bool *unknown_dim;
    const job_range *ranges; /* a name that no kernel has is an error */
    int n_ranges;
    const char *params;     /* of a program: the .safetensors file with its parameters; NULL: it has none */
    const char *definition; /* of a file of definitions, this one alone; NULL: all of them */
    const char *const *schedules; /* files of schedules that are tried first; there must be one task only */
    int n_schedules;
    const char *const *keys; /* exact keys: tasks with other keys are left out. NULL: all tasks stay */
    int n_keys;
    /* the same by job_task_hash of the keys: a hash that no task has is an error */
    const char *const *hashes;
    int n_hashes;
} job_source;

typedef struct {
    const tune_task **at;
    int n;
    job_versions *versions; /* of kernels whose versions are among the tasks */
    int n_versions;
} job_tasks;

/* Of the exact key: 16 hexadecimal digits. */
enum { JOB_HASH_SIZE = 17 };
const char *job_task_hash(const tune_task *task, char out[JOB_HASH_SIZE]);

/* False with an error in the context: the file cannot be read, a kernel has an extent that nobody fixed, a
 * schedule is refused. A file without a task is an error; a list of keys that no task has gives 0 tasks. */
bool job_find_tasks(tec_context *cx, const job_source *from, job_tasks *out);

#endif
