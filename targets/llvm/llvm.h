/* targets/llvm/llvm.h -- CPU code from lowered programs: objects, assembly, shared objects, functions in this process.
 *
 *     const llvm_code *code = llvm_generate(cx, &program, 1, t, &(llvm_options){.want_asm = true});
 *     llvm_jit *jit = llvm_jit_open(cx, &code, 1);
 *     tec_kernel_fn *f = (tec_kernel_fn *)llvm_jit_find(jit, code->symbols[0]);
 *     ... f(env, args, dims) ...
 *     llvm_jit_close(jit);
 *
 * The input is the flat form that lower/pass.h describes. Each program becomes one function of the ABI in include/tec/kernel.h.
 * The passes of LLVM are a fixed list (no vectoriser, no unrolling), so equal input gives equal bytes.
 * Lifetime: code is plain data in the context; a JIT is closed by its owner, and its functions die with it.
 * Errors: in the context. What the target cannot do is UNSUPPORTED; a module that LLVM refuses is our bug (INTERNAL).
 * Threads: several threads may generate at once, each with a context of its own.
 */
#ifndef TARGETS_LLVM_LLVM_H
#define TARGETS_LLVM_LLVM_H

#include "ir/ir.h"
#include "targets/target.h"
#include "tec/kernel.h"

/* A function that runs one of the programs by the remainder of a symbol; the others' symbols are passed on, and the quotient in its place. */
typedef struct {
    const char *symbol; /* of that function */
    int dim;            /* which symbol */
    int64_t modulus;
    const int *program; /* [modulus]; 0, the first, gets the symbols as they are */
} llvm_dispatch;

typedef struct {
    const char *const *symbols; /* one for each program; NULL: the programs' names */
    const llvm_dispatch *dispatch; /* NULL: none */
    bool want_ir, want_asm;     /* keep these texts */
    bool keep_denormals;        /* strict floating point: kernels leave the caller's mode as it is */
    bool unoptimised;           /* leave LLVM's passes out, for looking at what was generated */
} llvm_options;

typedef struct {
    const target *target;
    const char *const *symbols;
    int n;
    const void *object; /* an ELF relocatable object */
    size_t object_size;
    const char *ir, *assembly; /* NULL where not asked for */
} llvm_code;

/* All programs in one object. NULL with an error. */
const llvm_code *llvm_generate(tec_context *cx, const ir_program *const *programs, int n, const target *t, const llvm_options *o);

/* One ELF shared object of several codes for one target, by running ld.lld-19: its bytes, in the context. It imports nothing but
 * memcpy, memset and memmove; an object that needs more is refused, by name. */
const void *llvm_link(tec_context *cx, const llvm_code *const *codes, int n, size_t *size);

/* The functions of several codes, in this process. The target must run here. */
typedef struct llvm_jit llvm_jit;
TEC_GIVE llvm_jit *llvm_jit_open(tec_context *cx, const llvm_code *const *codes, int n);
/* The address of a symbol; NULL where there is none. */
void (*llvm_jit_find(const llvm_jit *jit, const char *symbol))(void);
void llvm_jit_close(TEC_TAKE llvm_jit *jit);

/* What an assembly text does in its hot loops: innermost loops that contain vector multiply-adds. */
typedef struct {
    int loops;         /* hot loops */
    int multiply_adds; /* vector FMA instructions in them */
    int stack_loads, stack_stores;
    int worst; /* the most stack references in one of them */
} llvm_spills;
llvm_spills llvm_count_spills(tec_context *cx, const target *t, const char *assembly);

/* The version of the code generator, part of what records are valid for. */
#define LLVM_CODE_VERSION 1

#endif
