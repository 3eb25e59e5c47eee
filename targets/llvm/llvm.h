/* targets/llvm/llvm.h -- CPU code from lowered programs: objects, assembly, shared objects, functions in this
 * process.
 *
 *     const target_code *code = llvm_generate(cx, &program, 1, t, NULL);
 *     llvm_jit *jit = llvm_jit_open(cx, &code, 1);
 *     tec_kernel_fn *f = (tec_kernel_fn *)llvm_jit_find(jit, code->symbols[0]);
 *     ... f(env, args, dims) ...
 *     llvm_jit_close(jit);
 *
 * The input is the flat form that lower/pass.h describes. Each program becomes one function of the ABI in
 * include/tec/kernel.h. The passes of LLVM are a fixed list (no vectoriser, no unrolling), so equal input
 * gives equal bytes.
 * Lifetime: code is plain data in the context; a JIT is closed by its owner, and its functions die with it.
 * Errors: in the context. What the target cannot do is UNSUPPORTED; a module that LLVM refuses is our bug
 * (INTERNAL).
 * Threads: several threads may generate at once, each with a context of its own.
 */
#ifndef TARGETS_LLVM_LLVM_H
#define TARGETS_LLVM_LLVM_H

#include "ir/ir.h"
#include "targets/codegen.h"

extern const target_codegen llvm_codegen; /* the functions below, as the compiler calls them */

/* All programs in one ELF object. Forms of text: "llvm" and "asm". NULL with an error. */
const target_code *llvm_generate(tec_context *cx, const ir_program *const *programs, int count,
                                 const target *machine, const target_codegen_options *options);

/* One ELF shared object of several codes for one target: its bytes, in the context. Several are put together
 * by running ld.lld-19; most single ones need no linker. It imports nothing but memcpy, memset and memmove;
 * an object that needs more is refused, by name. */
const void *llvm_link(tec_context *cx, const target_code *const *codes, int count, size_t *size);

/* The functions of several codes, in this process. The target must run here. */
typedef struct llvm_jit llvm_jit;
TEC_GIVE llvm_jit *llvm_jit_open(tec_context *cx, const target_code *const *codes, int count);
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
llvm_spills llvm_count_spills(tec_context *cx, const target *machine, const char *assembly);

/* The version of the LLVM library that generates code: "19.1.7". */
const char *llvm_version(tec_context *cx);

#endif
