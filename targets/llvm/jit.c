/* targets/llvm/jit.c -- objects loaded into this process.
 *
 * The very bytes that would be linked into a module are loaded, so tuning measures what is released. The only
 * symbols that they may import are given by address; nothing is looked up in the process.
 */
#include <stdlib.h>
#include <string.h>

#include "targets/llvm/gen.h"

#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

typedef struct {
    char *name;
    LLVMOrcExecutorAddress address;
} entry;

struct llvm_jit {
    LLVMOrcLLJITRef lljit;
    entry *entries;
    int n;
};

static void *fail(tec_context *cx, const char *what, LLVMErrorRef error)
{
    return base_fail(cx, TEC_INTERNAL, (base_loc){0}, "%s: %s", what, llvm_take_error(cx, error));
}

static LLVMOrcCSymbolMapPair import(LLVMOrcLLJITRef jit, const char *name, LLVMOrcExecutorAddress address)
{
    LLVMJITEvaluatedSymbol s = {address,
                                {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}};
    return (LLVMOrcCSymbolMapPair){LLVMOrcLLJITMangleAndIntern(jit, name), s};
}

#define ADDRESS(function) ((LLVMOrcExecutorAddress)(uintptr_t)(function))

static bool define_imports(tec_context *cx, LLVMOrcLLJITRef jit)
{
    LLVMOrcCSymbolMapPair pairs[] = {import(jit, "memcpy", ADDRESS(memcpy)),
                                     import(jit, "memset", ADDRESS(memset)),
                                     import(jit, "memmove", ADDRESS(memmove))};
    LLVMErrorRef error = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit),
                                               LLVMOrcAbsoluteSymbols(pairs, BASE_COUNT(pairs)));
    return !error || fail(cx, "cannot define the imports of kernels", error);
}

static bool add_object(tec_context *cx, LLVMOrcLLJITRef jit, const target_code *code)
{
    LLVMMemoryBufferRef bytes =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(code->bytes, code->size, code->symbols[0]);
    LLVMErrorRef error = LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), bytes);
    return !error || fail(cx, "cannot load generated code", error);
}

static bool find_symbols(tec_context *cx, llvm_jit *jit, const target_code *code)
{
    for (int i = 0; i < code->n; i++) {
        const char *name = code->symbols[i],
                   *what = base_format(cx, "cannot find '%s' in generated code", name);
        entry *e = &jit->entries[jit->n];
        LLVMErrorRef error = LLVMOrcLLJITLookup(jit->lljit, &e->address, name);
        if (error)
            return fail(cx, what, error);
        e->name = strcpy(base_calloc(cx, strlen(name) + 1, 1), name);
        jit->n++;
    }
    return true;
}

/* The imports are defined before any object is added, since nothing is looked up in the process. */
static bool fill(tec_context *cx, llvm_jit *jit, const target_code *const *codes, int count)
{
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&jit->lljit, NULL);
    if (error)
        return fail(cx, "cannot start the just-in-time linker", error);
    if (!define_imports(cx, jit->lljit))
        return false;
    for (int i = 0; i < count; i++)
        if (!add_object(cx, jit->lljit, codes[i]))
            return false;
    for (int i = 0; i < count; i++)
        if (!find_symbols(cx, jit, codes[i]))
            return false;
    return true;
}

static void close_jit(void *jit)
{
    llvm_jit_close(jit);
}

/* Loads the objects into this process; the caller closes the result. Code for another machine is refused. */
TEC_GIVE llvm_jit *llvm_jit_open(tec_context *cx, const target_code *const *codes, int count)
{
    int total = 0;
    for (int i = 0; i < count; i++) {
        if (!codes[i])
            return NULL;
        if (!codes[i]->target->native)
            return base_fail(cx, TEC_UNSUPPORTED, (base_loc){0}, "%s", target_unfit(cx, codes[i]->target));
        total += codes[i]->n;
    }
    base_held held;
    llvm_jit *jit = base_calloc(cx, 1, sizeof *jit);
    base_hold(cx, &held, close_jit, jit);
    jit->entries = base_calloc(cx, (size_t)total, sizeof *jit->entries);
    if (fill(cx, jit, codes, count)) {
        base_keep(&held);
        return jit;
    }
    base_drop(&held);
    return NULL;
}

void (*llvm_jit_find(const llvm_jit *jit, const char *symbol))(void)
{
    for (int i = 0; i < jit->n; i++)
        if (!strcmp(jit->entries[i].name, symbol))
            return (void (*)(void))(uintptr_t)jit->entries[i].address;
    return NULL;
}

void llvm_jit_close(TEC_TAKE llvm_jit *jit)
{
    if (!jit)
        return;
    if (jit->lljit) {
        LLVMErrorRef error = LLVMOrcDisposeLLJIT(jit->lljit);
        if (error)
            LLVMConsumeError(error);
    }
    for (int i = 0; i < jit->n; i++)
        free(jit->entries[i].name);
    free(jit->entries);
    free(jit);
}
