/* targets/llvm/codegen.c -- this room as a row of targets/kinds.def. */
#include <llvm-c/Core.h>

#include "targets/llvm/llvm.h"

const char *llvm_version(tec_context *cx)
{
    unsigned major, minor, patch;

    LLVMGetVersion(&major, &minor, &patch);
    return base_format(cx, "%u.%u.%u", major, minor, patch);
}

static void *load(tec_context *cx, const target_code *const *codes, int n)
{
    return llvm_jit_open(cx, codes, n);
}

static tec_kernel_fn *find(void *jit, const char *symbol)
{
    return (tec_kernel_fn *)llvm_jit_find(jit, symbol);
}

static void unload(void *jit)
{
    llvm_jit_close(jit);
}

static const char *const texts[] = {"llvm", "asm", NULL};
const target_codegen llvm_codegen = {
    .texts = texts,
    .generate = llvm_generate,
    .link = llvm_link,
    .load = load,
    .find = find,
    .unload = unload,
};
