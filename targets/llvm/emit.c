/* targets/llvm/emit.c -- LLVM's side: target machines, the fixed list of passes, objects and assembly.
 *
 * The list has no vectoriser and no unrolling: loops have been shaped before, and what they look like must not depend on LLVM's
 * taste. Nor has it global value numbering and elimination of dead stores, which took a fifth of a candidate's time and changed no
 * kernel: what they find, lower/ has shared and promoted. It brings stack slots into registers, removes what is computed twice, moves
 * what does not change out of loops, and tidies up. Reduction of index arithmetic to pointers with constant displacements is part of
 * LLVM's code generation.
 */
#include <pthread.h>
#include <string.h>

#include "targets/llvm/gen.h"

#include <llvm-c/Error.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>

static const char passes[] = "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-simplify,lcssa,"
                             "loop-mssa(licm<allowspeculation>),early-cse<memssa>,instcombine<no-verify-fixpoint>,"
                             "loop-mssa(licm<allowspeculation>),adce,simplifycfg)";

/* Strength reduction is ours (walkers.c): LLVM's takes a register for each displacement of a large tile, and spills them. It can be switched
 * off for the process alone. */
static void register_targets(void)
{
    static const char *const options[] = {"tec", "-disable-lsr"};

    LLVMParseCommandLineOptions(BASE_COUNT(options), options, NULL);
    /* The parser is for imported C, which may contain assembly. */
#define TARGET_ARCH(name, component)         \
    LLVMInitialize##component##TargetInfo(); \
    LLVMInitialize##component##Target();     \
    LLVMInitialize##component##TargetMC();   \
    LLVMInitialize##component##AsmPrinter(); \
    LLVMInitialize##component##AsmParser();
#include "targets/archs.def"
}

/* LLVM reads the parts of a triple by their place, so that one without a vendor gets it:
 * armv7-linux-gnueabihf would have no operating system. */
const char *llvm_triple(tec_context *cx, const target *t)
{
    char *text = LLVMNormalizeTargetTriple(t->triple);
    const char *triple = base_strdup(cx, text);
    LLVMDisposeMessage(text);
    return triple;
}

LLVMTargetMachineRef llvm_target_machine(tec_context *cx, const target *t)
{
    /* LLVM's registry of targets belongs to the process and may be filled only once. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    LLVMTargetRef target_ref;
    char *message = NULL;
    const char *triple = llvm_triple(cx, t);
    pthread_once(&once, register_targets);
    if (LLVMGetTargetFromTriple(triple, &target_ref, &message)) {
        base_fail(cx, TEC_UNSUPPORTED, (base_loc){0}, "LLVM has no target for the triple '%s': %s", t->triple, message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    return LLVMCreateTargetMachine(target_ref, triple, t->arch->plain_cpu, t->features,
                                   LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
}

bool llvm_optimise(llvm_gen *g)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(g->m, passes, g->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return true;
    char *message = LLVMGetErrorMessage(error);
    BASE_BUG(g->cx, "LLVM's passes failed: %s", message);
    LLVMDisposeErrorMessage(message);
    return false;
}

bool llvm_emit(llvm_gen *g, bool assembly, const void **data, size_t *size)
{
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    LLVMModuleRef copy = LLVMCloneModule(g->m);
    bool failed =
        LLVMTargetMachineEmitToMemoryBuffer(g->machine, copy, assembly ? LLVMAssemblyFile : LLVMObjectFile, &message, &buffer);
    if (failed) {
        BASE_BUG(g->cx, "LLVM could not emit code for '%s': %s", g->t->triple, message);
        LLVMDisposeMessage(message);
    } else {
        *size = LLVMGetBufferSize(buffer);
        *data = base_copy(g->cx, LLVMGetBufferStart(buffer), *size);
        LLVMDisposeMemoryBuffer(buffer);
    }
    LLVMDisposeModule(copy);
    return !failed;
}
