/* runtime/format.h -- what a module says about itself, and the file that holds it (docs/module.md).
 *
 *     rt_module_desc m = {.target = "llvm -mcpu=x86-64-v3", .arch = "x86_64", .n_functions = 1,
 *         .functions = &matmul};
 *     if (!rt_module_write(&m, elf, elf_size, "matmul.so", 0, err))
 *         fprintf(stderr, "%s\n", err->text);
 *
 * The compiler fills rt_function_desc, the graph builder rt_graph_desc; one encoder writes them and one
 * decoder reads them. The same description gives the same bytes.
 * Lifetime: a description borrows all that it points at. A decoded one lives as long as its module.
 * Errors: into the caller's tec_error. The decoder takes its input for hostile: counts, offsets and sizes are
 *   compared with the bytes that are there, and references against what they refer to, before anything is
 *   used.
 * Threads: plain data.
 */
#ifndef RUNTIME_FORMAT_H
#define RUNTIME_FORMAT_H

#include "base/base.h"
#include "runtime/bytecode.h"
#include "runtime/dim.h"
#include "tec/kernel.h"
#include "tec/runtime.h"

enum {
    RT_MAX_RANK = 16,
    RT_MAX_PARAMS = 4096,  /* of one function */
    RT_MAX_SYMBOLS = 1024, /* of one function or graph */
    RT_MAX_FUNCTIONS = 1 << 16,
    RT_MAX_GRAPHS = 1 << 10,
    RT_MAX_STEPS = 1 << 20,   /* of one graph; values and constants as well */
    RT_MAX_TEXT = 1 << 16,    /* bytes of one name or text */
    RT_MAX_LAUNCHES = 4096,   /* of one function */
    RT_MAX_LOOPS = 64,        /* around launches of one function */
    RT_MAX_CODES = 256,       /* pieces of device code */
    RT_MAX_SITES = 64,        /* devices of one graph */
    RT_MAX_RANGES = 64,       /* of one function */
    RT_MAX_THREADS = 1 << 16, /* along one axis of a block */
    RT_WEIGHT_ALIGN = 64      /* of each constant among the weights, and of all memory of an executor's own */
};

typedef enum {
    RT_PARAM_BUFFER, /* args[i] points at the first element */
    RT_PARAM_SCALAR  /* args[i] points at the value; rank 0 */
} rt_param_kind;

typedef struct {
    const char *name;
    rt_param_kind kind;
    base_dtype dtype;
    bool is_output; /* the function writes it */
    int32_t rank;
    const rt_dim *shape;   /* [rank], over the function's symbols */
    const rt_dim *strides; /* [rank], in elements; NULL: compact row-major */
    int32_t alignment;     /* bytes that the address must be a multiple of, up to 64; 0: natural */
} rt_param_desc;

/* What must hold before the function may run. */
typedef struct {
    rt_dim condition;
    const char *text; /* as the user wrote it: "n % 8 == 0" */
} rt_fact_desc;

/* Two parameters that may overlap; unnamed pairs may not, unless both are only read. */
typedef struct {
    int32_t a, b;
} rt_alias_desc;

typedef enum {
    RT_ARG_PARAM,     /* parameter `index` of the function: a buffer's place, or a scalar's value */
    RT_ARG_WORKSPACE, /* a place in the function's workspace: `value` is its offset in bytes */
    RT_ARG_SIZE       /* an i64: `value` */
} rt_arg_kind;

typedef struct {
    rt_arg_kind kind;
    int32_t index; /* RT_ARG_PARAM */
    rt_dim value;  /* over the function's symbols; absent for a parameter */
} rt_arg_desc;

/* One launch of a kernel. Sizes are over the function's symbols. */
typedef struct {
    const char *kernel;   /* in the module's device code */
    rt_dim guard;         /* 0: not launched; absent: always launched */
    const rt_dim *grid;   /* [3] blocks along x, y, z; 0: nothing to do */
    int32_t block[3];     /* threads of a block along x, y, z */
    int64_t shared_bytes; /* that a block uses */
    const rt_arg_desc *args;
    int32_t n_args;
} rt_launch_desc;

/* A loop around launches first to end - 1, which are started for each of its iterations. In them, and in the
 * loops inside of it, symbol n_symbols + (the loop's place in the list) is min + the iteration. */
typedef struct {
    int32_t first, end;
    rt_dim min, extent;
} rt_loop_desc;

/* The function of the module that runs a call if the symbol that chooses is at most `to`. It takes what the
 * one takes whose range this is, has code of the host, and no ranges of its own. */
typedef struct {
    int64_t to;
    int32_t function;
} rt_range_desc;

typedef struct {
    const char *name;   /* as users call it */
    const char *symbol; /* in the shared object, a tec_kernel_fn; NULL for a function of a device */
    const char *device; /* the kind of device that its launches need: "opencl"; NULL: host code */
    const rt_launch_desc *launches; /* in order; what a function of a device does */
    int32_t n_launches;
    const rt_loop_desc *loops; /* around launches; an outer one stands before those inside of it */
    int32_t n_loops;
    const rt_param_desc *params;
    int32_t n_params;
    const char *const *symbols; /* names of dims[j] */
    int32_t n_symbols;
    const rt_fact_desc *facts;
    int32_t n_facts;
    const rt_alias_desc *aliases;
    int32_t n_aliases;
    rt_dim workspace;            /* bytes per call; absent: none */
    rt_dim thread_workspace;     /* bytes per worker; absent: none */
    rt_dim flops, bytes;         /* of one call, for the profile; absent: unknown */
    const char *origin;          /* where its schedule came from: "default", "record of ..."; may be NULL */
    int32_t chooser;             /* the symbol that chooses among ranges */
    const rt_range_desc *ranges; /* of rising `to`; above the last one the function runs itself */
    int32_t n_ranges;
    const char *summary; /* for people: operators and extents, "matmul+add [n, 64, 10]"; may be NULL */
} rt_function_desc;

/* A kernel of CUDA that uses more bytes of shared memory takes all of them as one array, whose size the
 * launch says. */
enum { RT_CUDA_STATIC_SHARED = 48 << 10 };

typedef enum {
    RT_CODE_OPENCL_C = 1, /* the text of a program in OpenCL C */
    RT_CODE_CUBIN = 2,    /* machine code of NVIDIA GPUs, for the architecture that the target names */
    RT_CODE_PTX = 3       /* text that NVIDIA's driver compiles for that architecture and later ones */
} rt_code_format;

/* A kernel of a piece of device code, and the size of each argument in bytes; 0: a place in memory. */
typedef struct {
    const char *name;
    const int32_t *args;
    int32_t n_args;
} rt_kernel_desc;

/* A piece of code for one kind of device. Where several pieces have a kernel, the first that fits the device
 * serves it. */
typedef struct {
    const char *target; /* text of the target that it was made for */
    const char *device; /* the kind of device: "opencl" */
    rt_code_format format;
    const rt_kernel_desc *kernels;
    int32_t n_kernels;
    const void *bytes; /* borrowed */
    uint64_t size;
} rt_code_desc;

/* A tensor that is known when the module is made. */
typedef struct {
    const char *name; /* may be NULL */
    base_dtype dtype;
    int32_t rank;
    const int64_t *shape;
    const void *data; /* compact, row-major; the encoder reads it, the loader sets it */
} rt_constant_desc;

/* symbols[j] of a graph is dimension `dim` of input `input`, whose shape there is that symbol alone. */
typedef struct {
    const char *name;
    int32_t input, dim;
} rt_symbol_desc;

typedef struct {
    const char *name;
    base_dtype dtype;
    int32_t rank;
    const rt_dim *shape; /* over the graph's symbols */
} rt_tensor_desc;

typedef enum {
    RT_IN_INPUT,    /* index: which input */
    RT_IN_OUTPUT,   /* index: which output; its bytes are what the user reads */
    RT_IN_CONSTANT, /* index: which of the module's constants; never written */
    RT_IN_POOL      /* the block of memory of its site for intermediate values; index 0 */
} rt_storage;

/* A value of a running graph: a compact tensor at a byte offset of its storage. Values that share storage
 * alias. Inputs and outputs lie in main memory. A constant at a site is a copy of the module's, made once. */
typedef struct {
    base_dtype dtype;
    int32_t rank;
    const rt_dim *shape;
    rt_storage storage;
    int32_t index;
    rt_dim offset; /* bytes, a multiple of 64 in the pool and of the element's size elsewhere; absent: 0 */
    int32_t site;  /* 0: main memory; k: sites[k - 1] of the graph */
} rt_value_desc;

/* A device that a graph runs on beside the host. */
typedef struct {
    const char *device; /* its kind: "opencl" */
    rt_dim pool_size;   /* bytes for intermediate values there; absent: 0 */
} rt_site_desc;

/* as a step's function: copies values[0] to values[1], of equal size in bytes, also between sites */
enum { RT_STEP_COPY = -1 };

typedef struct {
    int32_t function;      /* of the module, or RT_STEP_COPY */
    const int32_t *values; /* one for each parameter of the function */
    int32_t n_values;
    const rt_dim *dims; /* over the graph's symbols, one for each symbol of the function */
    int32_t n_dims;
    const char *name;  /* the operators fused: "Conv+Relu" */
    const char *nodes; /* the ONNX nodes: "conv1, relu1"; may be NULL */
} rt_step_desc;

typedef struct {
    const char *name;
    const rt_symbol_desc *symbols;
    int32_t n_symbols;
    const rt_fact_desc *facts; /* over the graph's symbols */
    int32_t n_facts;
    const rt_tensor_desc *inputs;
    int32_t n_inputs;
    const rt_tensor_desc *outputs;
    int32_t n_outputs;
    const rt_value_desc *values;
    int32_t n_values;
    rt_dim pool_size; /* bytes in main memory; absent: 0 */
    const rt_site_desc *sites;
    int32_t n_sites;
    const rt_step_desc *steps;
    int32_t n_steps;
} rt_graph_desc;

enum { RT_MODULE_KEEP_DENORMALS = 1 }; /* strict floats: kernels run in the caller's mode */

typedef struct {
    const char *target;          /* text of the target description */
    const char *arch;            /* "x86_64", "aarch64"; NULL: any, where there is no machine code */
    const char *const *features; /* what the CPU must have, by the names of rt_cpu_has */
    int32_t n_features;
    uint32_t flags;
    const char *producer; /* "tec 1.0.0"; may be NULL */
    const rt_function_desc *functions;
    int32_t n_functions;
    const rt_constant_desc *constants;
    int32_t n_constants;
    const rt_graph_desc *graphs;
    int32_t n_graphs;
    const rt_code_desc *codes; /* for devices */
    int32_t n_codes;
    rt_program_desc program;
} rt_module_desc;

/* Bytes that grow; `{0}` is empty; rt_bytes_free empties them. After a failed allocation all that is added is
 * dropped. */
typedef struct {
    uint8_t *data;
    size_t n, cap;
    bool failed;
} rt_bytes;
void rt_bytes_add(rt_bytes *bytes, const void *data, size_t n);
void rt_bytes_free(rt_bytes *bytes);

typedef enum {
    RT_SECTION_INFO = 1,
    RT_SECTION_FUNCTIONS = 2,
    RT_SECTION_CONSTANTS = 3,
    RT_SECTION_GRAPHS = 4,
    RT_SECTION_CODE = 5,    /* code for devices */
    RT_SECTION_PROGRAM = 6, /* data types, functions and their bytecode */
    RT_SECTION_WEIGHTS = 7, /* the constants' bytes */
    RT_SECTION_BESIDE = 8,  /* an rt_beside: the constants' bytes lie in another file */
    RT_SECTION_END
} rt_section_kind;

typedef struct {
    const char *name; /* of the file, in the module's folder */
    uint64_t offset;  /* of the first constant's bytes */
    uint64_t size;
    uint64_t checksum;      /* of those bytes */
    uint64_t head_checksum; /* of what comes before them */
} rt_beside;

struct rt_arena; /* runtime/alloc.h */

/* the sections from INFO to this one describe the module, and are always there */
enum { RT_SECTION_LAST = RT_SECTION_PROGRAM };

/* One metadata section of a description (INFO to RT_SECTION_LAST), appended to `out`. */
bool rt_module_encode(const rt_module_desc *module, rt_section_kind kind, rt_bytes *out, tec_error *err);
/* Fills the part of *module that the section holds. Texts point into `data`; the rest is allocated in the
 * arena. The result is well formed in itself; rt_module_check holds the parts against each other. */
bool rt_module_decode(rt_module_desc *module, rt_section_kind kind, const void *data, size_t size,
                      struct rt_arena *arena, tec_error *err);
bool rt_beside_encode(const rt_beside *beside, rt_bytes *out, tec_error *err);
bool rt_beside_decode(rt_beside *beside, const void *data, size_t size, tec_error *err);

/* References, ranks, symbols and dimension code of a whole description. All that is encoded or decoded passes
 * it. */
bool rt_module_check(const rt_module_desc *module, tec_error *err);

/* The same of the program alone: every word of its bytecode (runtime/verify.c). */
bool rt_program_check(const rt_module_desc *module, tec_error *err);

/* Whether any function is host code. */
bool rt_has_host_code(const rt_module_desc *module);

/* Whether two parameters may overlap in memory. */
bool rt_may_alias(const rt_function_desc *function, int32_t a, int32_t b);

/* Bytes of a constant, and its place among the weights: each begins at the next multiple of RT_WEIGHT_ALIGN.
 * For checked ones. */
int64_t rt_constant_bytes(const rt_constant_desc *constant);
uint64_t rt_weight_next(uint64_t end);

enum {
    RT_WEIGHTS_INSIDE = 1, /* in the file, whatever their size */
    RT_WEIGHTS_BESIDE = 2  /* in PATH.safetensors, whatever their size; by default from 2 GB on */
};

/* Writes the module beside `path` and renames it there. `elf` is the whole shared object; none is legal
 * without functions. */
bool rt_module_write(const rt_module_desc *module, const void *elf, size_t elf_size, const char *path,
                     unsigned flags, tec_error *err);
/* The same bytes, weights inside, added to *out. */
bool rt_module_bytes(const rt_module_desc *module, const void *elf, size_t elf_size, rt_bytes *out,
                     tec_error *err);

#endif
