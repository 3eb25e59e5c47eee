/* tec/runtime.h -- running compiled modules: arrays, thread pool, modules, functions, graph executors,
 * timing.
 *
 *     tec_error err = {0};
 *     tec_module *m = tec_module_open("resnet.so", NULL, &err);
 *     tec_executor *ex = tec_executor_new(m, NULL, NULL, &err);
 *     if (!tec_executor_set_input(ex, 0, &image, &err) || !tec_executor_run(ex, &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     const DLTensor *scores = tec_executor_output(ex, 0);
 *     tec_executor_free(ex);
 *     tec_module_free(m);
 *
 * Lifetime: objects are reference-counted (ref, free) or owned by one caller (free). NULL may be freed. An
 *   executor or a function keeps what it uses.
 * Errors: functions that can fail take a tec_error, which may be NULL; on failure constructors give NULL,
 *   actions false. A NULL object is refused, so a chain may be checked once, at its end: a tec_error keeps
 *   the first failure until it is zeroed.
 * Threads: any number may use a module or a pool at once; an array, a function or an executor is used by one
 * at a time.
 */
#ifndef TEC_RUNTIME_H
#define TEC_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base.h"
#include "tec/dlpack.h"
#include "tec/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arrays ---- */

/* An array in main memory, or in that of a device (tec/device.h): a DLTensor with an owner. */
typedef struct tec_array tec_array;
typedef struct tec_device tec_device;

/* Compact, 64-byte aligned, zeroed. */
TEC_API TEC_GIVE tec_array *tec_array_new(DLDataType dtype, int ndim, const int64_t *shape, tec_error *err);
/* A compact copy, in main memory, of any tensor; one on a device must be compact. */
TEC_API TEC_GIVE tec_array *tec_array_copy(const DLTensor *from, tec_error *err);
/* An array over the bytes of another one, with its own dtype, shape and strides (NULL: compact). It begins
 * byte_offset bytes behind the first element of `of`, and must end within it. */
TEC_API TEC_GIVE tec_array *tec_array_view(TEC_KEEP tec_array *of, DLDataType dtype, int ndim,
                                           const int64_t *shape, const int64_t *strides, int64_t byte_offset,
                                           tec_error *err);
/* Takes over a DLPack array; its deleter runs with the last reference. On failure the caller still owns
 * it. */
TEC_API TEC_GIVE tec_array *tec_array_from_dlpack(TEC_TAKE DLManagedTensorVersioned *from, tec_error *err);
/* Hands out a reference as DLPack; calling its deleter gives the reference back. */
TEC_API TEC_GIVE DLManagedTensorVersioned *tec_array_to_dlpack(TEC_KEEP tec_array *array, tec_error *err);
/* The same for libraries that use DLPack before version 1.0. */
TEC_API TEC_GIVE DLManagedTensor *tec_array_to_dlpack_unversioned(TEC_KEEP tec_array *array, tec_error *err);
TEC_API TEC_GIVE tec_array *tec_array_ref(tec_array *array);
/* Work in a stream that uses an array on a device must have ended before the last reference goes: the memory
 * is given to the next array. */
TEC_API void tec_array_free(TEC_TAKE tec_array *array);
/* Lives as long as the array; shape and strides are not to be changed. */
TEC_API const DLTensor *tec_array_tensor(const tec_array *array);
TEC_API void *tec_array_data(const tec_array *array);

/* The number of elements of a tensor, and of bytes if it is compact; -1 if the number exceeds an int64_t. */
TEC_API int64_t tec_tensor_elements(const DLTensor *tensor);
TEC_API int64_t tec_tensor_bytes(const DLTensor *tensor);
/* Whether strides are those of compact row-major order (dimensions of extent 1 may have any). */
TEC_API bool tec_tensor_is_compact(const DLTensor *tensor);
/* Copies the elements of `from` to `to`, also from and to devices. Both need the same dtype and shape, and
 * must not overlap. In main memory any strides are allowed; on a device a tensor must be compact, and the
 * device open. The copy is complete when the call returns. */
TEC_API bool tec_tensor_copy(const DLTensor *to, const DLTensor *from, tec_error *err);
/* Writes dtype and shape, as "f32[2, 3]", to buffer, cut to its size and terminated; gives buffer. */
TEC_API const char *tec_tensor_text(const DLTensor *tensor, char *buffer, size_t size);

/* .npy files: versions 1 to 3, either byte order and order of dimensions when read; bool, integers and
 * floats, no bfloat16. */
TEC_API TEC_GIVE tec_array *tec_npy_read(const char *path, tec_error *err);
TEC_API TEC_GIVE tec_array *tec_npy_decode(const void *data, size_t size, tec_error *err);
TEC_API bool tec_npy_write(const char *path, const DLTensor *tensor, tec_error *err);

/* ---- thread pool ---- */

/* Threads for fork-join loops. The caller of a loop works too, so a pool of n has n-1 threads of its own;
 * they wait a few microseconds for the next loop, then sleep. One loop runs at a time: a loop that another
 * thread starts meanwhile waits for its turn, and a loop inside a loop runs on its caller alone. After a
 * fork, the child's copy runs loops on the caller alone. */
typedef struct tec_pool tec_pool;

/* Iterations begin .. end-1 on worker 0 .. n_workers-1; the caller is worker 0. Not 0: an error, a
 * tec_status. */
typedef int32_t tec_loop_fn(void *user, int64_t begin, int64_t end, int32_t worker);

/* threads 0: as many as affinity mask and cgroup limits let run at once. */
TEC_API TEC_GIVE tec_pool *tec_pool_new(int threads, tec_error *err);
/* The pool that the whole process shares. The first call makes it; it ends with its last reference. */
TEC_API TEC_GIVE tec_pool *tec_pool_default(tec_error *err);
TEC_API TEC_GIVE tec_pool *tec_pool_ref(tec_pool *pool);
TEC_API void tec_pool_free(TEC_TAKE tec_pool *pool);
TEC_API int tec_pool_threads(const tec_pool *pool);
/* Runs body for iterations 0..n-1, cut into slices, on at most max_workers workers (0: all). Gives 0, or the
 * first other status that a slice returned; after that no new slice begins. */
TEC_API int32_t tec_pool_run(tec_pool *pool, tec_loop_fn *body, void *user, int64_t count, int max_workers);

/* Functions of the user's in the place of kernels; see tec_rivals_add. */
typedef struct tec_rivals tec_rivals;

/* How functions and executors run. Zero is the default. */
typedef struct {
    tec_pool *pool; /* borrowed by reference; NULL: the default pool */
    int threads;    /* at most so many of the pool's; 0: all; 1: no pool at all */
    bool profile;   /* executors measure each step */
    bool keep;      /* executors keep a copy of what each step wrote */
    bool check_nan; /* executors fail at the first step that writes a NaN */
    /* Functions of the user's that kernels call by name; NULL where unknown. May itself be NULL: there are
     * none. */
    void *(*extern_function)(void *user, const char *name);
    void *extern_user;
    /* The device that runs functions which were built for its kind, and those steps of graphs which are
     * placed on its kind. NULL: the first device of the kind. */
    tec_device *device;
    const tec_rivals *rivals; /* borrowed: they stay as long as what was made with them; NULL: none */
    /* Of one call of a function or run of an executor; programs have limits of their own (tec/program.h).
     * Both are looked at between steps of a graph, and before each iteration of a loop around launches on a
     * device; code that runs is not interrupted. Who waits for a device waits until the deadline: a kernel
     * that does not end leaves the run under way, which tec_executor_wait and tec_function_wait go on
     * waiting for. Freeing waits until it ends, since it uses memory. */
    int64_t max_steps; /* iterations of loops around launches; 0: no limit; error: TEC_INVALID */
    double deadline;   /* seconds; 0: none; error: TEC_TIMEOUT */
    /* A stream of the caller's on `device`, which must be given too: a CUstream of the device's primary
     * context (tec_device_context), or a cl_command_queue of the device's context that runs its commands in
     * order. Launches and copies go there, behind what is there already. It must stay until what was made
     * with it is freed. CUDA's default stream is (void *)1, and that of the thread (void *)2, as in CUDA
     * and in DLPack. NULL: a stream of tec's own. */
    void *stream;
} tec_run_options;

/* ---- modules ---- */

typedef struct tec_module tec_module;

typedef struct {
    bool verify_weights; /* compares the weights with their checksum; this reads all of them */
    /* Reads the weights into memory, on huge pages if the system has some, instead of mapping the file. */
    bool copy_weights;
} tec_module_options;

/* Opens a module file. Refuses, with the reason: a damaged file, another ABI version, another architecture, a
 * CPU without the features that the code needs. options may be NULL. While it is open, the file may be
 * replaced but not changed in place. */
TEC_API TEC_GIVE tec_module *tec_module_open(const char *path, const tec_module_options *options,
                                             tec_error *err);
/* The same of a module file's bytes in memory, which may be freed afterwards: code and weights are copied.
 * Refuses a module whose weights lie in a file of their own. */
TEC_API TEC_GIVE tec_module *tec_module_open_bytes(const void *data, size_t size,
                                                   const tec_module_options *options, tec_error *err);
TEC_API TEC_GIVE tec_module *tec_module_ref(tec_module *module);
TEC_API void tec_module_free(TEC_TAKE tec_module *module);
TEC_API const char *tec_module_target(const tec_module *module);
/* Those that are called by themselves: not the ones that a kernel has for ranges of an extent. */
TEC_API int tec_module_n_functions(const tec_module *module);
TEC_API const char *tec_module_function_name(const tec_module *module, int i);
TEC_API int tec_module_n_graphs(const tec_module *module);
TEC_API const char *tec_module_graph_name(const tec_module *module, int i);

/* ---- functions ---- */

/* One function of a module, ready to be called by one thread at a time: it holds the workspace that calls
 * need. */
typedef struct tec_function tec_function;

/* name NULL: the module's only function. options may be NULL. */
TEC_API TEC_GIVE tec_function *tec_function_new(TEC_KEEP tec_module *module, const char *name,
                                                const tec_run_options *options, tec_error *err);
TEC_API void tec_function_free(TEC_TAKE tec_function *function);
TEC_API int tec_function_n_params(const tec_function *function);
/* "x: f32[n, 1024]", cut to size; gives buffer. */
TEC_API const char *tec_function_param_text(const tec_function *function, int index, char *buffer,
                                            size_t size);

/* What a parameter looks like: extents that depend on symbols are -1 in shape; text shows them: "f32[n,
 * 1024]". */
typedef struct {
    const char *name; /* lives as long as the function */
    DLDataType dtype;
    int ndim;
    int64_t shape[16];
    char text[160];
    bool is_output, is_scalar; /* a scalar is read from a tensor of rank 0 in main memory */
} tec_param_info;
TEC_API bool tec_function_param_info(const tec_function *function, int index, tec_param_info *info,
                                     tec_error *err);

/* Calls the function on tensors, one for each parameter in order, outputs included; a scalar is a tensor of
 * rank 0. Symbols take their values from the shapes. Before the code runs, the call checks count, device,
 * dtype, rank, shape, strides, alignment, overlap and the function's conditions; the error names the
 * argument that is wrong. For a function that runs on a device, tensors must lie on that device and scalars
 * in main memory: the call copies nothing. It allocates memory only when the workspace must grow. The
 * results are complete when it returns. */
TEC_API bool tec_function_call(tec_function *function, DLTensor *const *args, int count, tec_error *err);
/* tec_function_call_async checks the arguments and puts the launches into the stream; scalars are read before
 * it returns, tensors must stay until the launches have run. Calls of one function run one after the other.
 * tec_function_wait waits for all of them and reports the device's errors; who waits for the stream by other
 * means need not call it. A function of the host has run when tec_function_call_async returns. */
TEC_API bool tec_function_call_async(tec_function *function, DLTensor *const *args, int count,
                                     tec_error *err);
TEC_API bool tec_function_wait(tec_function *function, tec_error *err);
/* Ends the call that is under way with TEC_CANCELLED, or else the next one. Later calls are not affected. Any
 * thread may call it. */
TEC_API void tec_function_cancel(tec_function *function);

/* ---- functions of the user's in the place of kernels ----
 *
 *     tec_rivals *r = tec_rivals_new(&err);
 *     if (!tec_rivals_add(r, module, "matmul+add", my_gemm, (int64_t[]){1, 8, 64, 512}, 4, NULL, NULL, &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     tec_executor *ex = tec_executor_new(module, NULL, &(tec_run_options){.rivals = r}, &err);
 *
 * A rival has the ABI of kernels (tec/kernel.h) and computes what the kernel computes, say by a function of a
 * library: nothing of it is linked to modules. Names, parameters and symbols are those that `tec inspect`
 * shows; constants come as the compiler packed them. Rivals must not change while something runs with them.
 */

TEC_API TEC_GIVE tec_rivals *tec_rivals_new(tec_error *err);
TEC_API void tec_rivals_free(TEC_TAKE tec_rivals *rivals);
/* Runs kernel and function on random numbers, with each of these extents (rising) as the value of the
 * kernel's symbol. The function is refused where its results differ from the kernel's. Afterwards it runs in
 * the kernel's place for the extents at which it was at least 3 % faster, and for those that are nearer to
 * them by ratio than to others. *faster: at how many extents; may be NULL. Kernels have at most one symbol;
 * for one without, no extents are needed. options may be NULL. */
TEC_API bool tec_rivals_add(tec_rivals *rivals, tec_module *module, const char *kernel,
                            tec_kernel_fn *function, const int64_t *extents, int count,
                            const tec_run_options *options, int *faster, tec_error *err);

/* ---- graph executors ---- */

typedef struct tec_executor tec_executor;

/* graph NULL: the module's only graph. options may be NULL. Several executors share a module, its weights and
 * a pool. */
TEC_API TEC_GIVE tec_executor *tec_executor_new(TEC_KEEP tec_module *module, const char *graph,
                                                const tec_run_options *options, tec_error *err);
TEC_API void tec_executor_free(TEC_TAKE tec_executor *ex);

TEC_API int tec_executor_n_inputs(const tec_executor *ex);
TEC_API int tec_executor_n_outputs(const tec_executor *ex);
TEC_API const char *tec_executor_input_name(const tec_executor *ex, int i);
TEC_API const char *tec_executor_output_name(const tec_executor *ex, int i);
TEC_API int tec_executor_find_input(const tec_executor *ex, const char *name); /* -1 where there is none */
TEC_API int tec_executor_find_output(const tec_executor *ex, const char *name);

/* What an input or output looks like: extents that depend on symbols are -1 in shape; text shows them:
 * "f32[n, 3, 224, 224]". */
typedef struct {
    const char *name;
    DLDataType dtype;
    int ndim;
    int64_t shape[16];
    char text[160];
} tec_tensor_info;
TEC_API bool tec_executor_input_info(const tec_executor *ex, int i, tec_tensor_info *info, tec_error *err);
TEC_API bool tec_executor_output_info(const tec_executor *ex, int i, tec_tensor_info *info, tec_error *err);

/* Copies a tensor (any strides; compact where it lies on a device) into the executor's own memory. */
TEC_API bool tec_executor_set_input(tec_executor *ex, int index, const DLTensor *tensor, tec_error *err);
/* Makes each run read this input directly from the caller's memory, without a copy. The memory must stay
 * alive as long as it is bound. It must be compact, and aligned as the kernels that read it ask: to its
 * elements, unless a kernel asks for more. NULL: back to the executor's own memory. */
TEC_API bool tec_executor_bind_input(tec_executor *ex, int index, const DLTensor *tensor, tec_error *err);
/* Makes each run write this output directly to the caller's memory, under the same conditions. */
TEC_API bool tec_executor_bind_output(tec_executor *ex, int index, const DLTensor *tensor, tec_error *err);

/* Computes everything that depends on the shapes of the inputs (values of symbols, shapes, places in memory)
 * and allocates the memory. Does nothing if the shapes have not changed. */
TEC_API bool tec_executor_prepare(tec_executor *ex, tec_error *err);
/* Prepares, then runs. With unchanged shapes: no allocation, no lock and no system call but the pool's
 * own. */
TEC_API bool tec_executor_run(tec_executor *ex, tec_error *err);
/* tec_executor_run_async starts a run and returns once the host has done its part; devices may still be at
 * work. tec_executor_wait waits for the devices and reports their errors; without a run under way it does
 * nothing. Between the two calls, do not change inputs or bindings and do not read outputs. If the graph uses
 * no device, the run is complete when tec_executor_run_async returns. */
TEC_API bool tec_executor_run_async(tec_executor *ex, tec_error *err);
TEC_API bool tec_executor_wait(tec_executor *ex, tec_error *err);
/* Ends the run that is under way with TEC_CANCELLED, or else the next one. Later runs are not affected. Any
 * thread may call it. What is in a device's stream already runs to its end. */
TEC_API void tec_executor_cancel(tec_executor *ex);
/* Valid until the next change of an input's shape or of the output's binding; NULL before the first
 * prepare. */
TEC_API const DLTensor *tec_executor_output(const tec_executor *ex, int i);

/* Bytes that the executor holds for intermediate values. */
TEC_API int64_t tec_executor_pool_bytes(const tec_executor *ex);

typedef enum {
    TEC_ROW_KERNEL,       /* the code of a kernel */
    TEC_ROW_SHAPE_KERNEL, /* the code of a kernel on vectors of integers alone: mostly extents */
    TEC_ROW_MEMORY,       /* a copy, or an instruction that makes, grows, copies or frees a value */
    TEC_ROW_CONTROL       /* any other instruction */
} tec_row_group;

/* The measurements of one step of an executor, or of one row of a program (tec/program.h), when
 * options.profile was set. */
typedef struct {
    const char *name;  /* operators and extents, "relu [512, 1000]"; "copy"; of a program: instructions too */
    const char *nodes; /* the model's nodes; NULL where unknown */
    const char *function; /* of a step; NULL for a copy, and where unknown */
    const char *origin;   /* where its schedule came from; NULL where unknown */
    int64_t calls;
    double min_s, median_s, total_s; /* the median over the last 256 calls */
    double gflops, gbytes;           /* per second, of a step at the median; 0 where unknown */
    double share;                    /* of the total time of all rows */
    tec_row_group group;
} tec_profile_row;
TEC_API int tec_executor_n_steps(const tec_executor *ex);
/* Step index in the order of execution; false without a profile or such a step. */
TEC_API bool tec_executor_profile(const tec_executor *ex, int index, tec_profile_row *row);
TEC_API void tec_executor_profile_reset(tec_executor *ex);

/* A copy of a tensor that one step wrote in the last run; there is one for each output of each step if
 * options.keep was set. */
typedef struct {
    int step;
    const char *name; /* of the step */
    const char *nodes;
    const char *param;      /* the function's parameter */
    const DLTensor *tensor; /* until the next run */
} tec_kept;
TEC_API int tec_executor_n_kept(const tec_executor *ex);
TEC_API bool tec_executor_kept(const tec_executor *ex, int index, tec_kept *kept);

/* ---- timing ---- */

typedef struct {
    double min_seconds;  /* of all measurements together; 0: 0.1 */
    int repeats;         /* at least so many measurements; 0: 10 */
    int max_repeats;     /* and at most; 0: 100000 */
    int warmup;          /* unmeasured calls first; 0: 1, negative: none */
    int64_t flush_bytes; /* memory written before each measurement, to empty the caches; 0: none */
} tec_time_options;

typedef struct {
    double min_s, median_s, p90_s, p95_s, p99_s, mean_s; /* of one call */
    int repeats;                                         /* measurements */
    /* calls in each: more than 1 where one is too short for the clock and nothing is flushed */
    int64_t inner;
} tec_timing;

/* Calls fn repeatedly, as often and as long as the options demand. If fn returns another status than TEC_OK,
 * tec_time stops with an error. options may be NULL. */
TEC_API bool tec_time(tec_status (*fn)(void *user), void *user, const tec_time_options *options,
                      tec_timing *out, tec_error *err);
TEC_API double tec_clock(void); /* seconds, monotonic, from an arbitrary start */

#ifdef __cplusplus
}
#endif
#endif
