/* targets/llvm/emit.c -- LLVM's side: target machines, the fixed list of passes, objects and assembly.
 *
 * The list has no vectoriser and no unrolling: loops have been shaped before, and what they look like must
 * not depend on LLVM's taste. Nor has it global value numbering and elimination of dead stores, which took a
 * fifth of a candidate's time and changed no kernel: what they find, lower/ has shared and promoted. It
 * brings stack slots into registers, removes what is computed twice, moves what does not change out of loops,
 * and tidies up. Reduction of index arithmetic to pointers with constant displacements is part of LLVM's code
 * generation; what has been reduced already is hidden from it (walkers.c).
 */
#include <pthread.h>
#include <string.h>

#include "targets/llvm/gen.h"

#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>

static const char passes[] =
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-simplify,lcssa,"
    "loop-mssa(licm<allowspeculation>),early-cse<memssa>,instcombine<no-verify-fixpoint>,"
    "loop-mssa(licm<allowspeculation>),adce,simplifycfg)";

static void register_targets(void)
{
    /* The parser is for imported C, which may contain assembly. */
#define TARGET_ARCH(name, component)                                                                         \
    LLVMInitialize##component##TargetInfo();                                                                 \
    LLVMInitialize##component##Target();                                                                     \
    LLVMInitialize##component##TargetMC();                                                                   \
    LLVMInitialize##component##AsmPrinter();                                                                 \
    LLVMInitialize##component##AsmParser();
#include "targets/archs.def"
}

static void dispose_message(void *message)
{
    LLVMDisposeMessage(message);
}

static void dispose_error_message(void *message)
{
    LLVMDisposeErrorMessage(message);
}

static const char *take(tec_context *cx, char *text, void (*dispose)(void *text))
{
    base_held held;

    if (!text)
        return NULL;
    base_hold(cx, &held, dispose, text);
    const char *copy = base_strdup(cx, text);
    base_drop(&held);
    return copy;
}

const char *llvm_take_message(tec_context *cx, char *message)
{
    return take(cx, message, dispose_message);
}

const char *llvm_take_error(tec_context *cx, LLVMErrorRef error)
{
    return take(cx, LLVMGetErrorMessage(error), dispose_error_message);
}

/* LLVM reads the parts of a triple by their place, so that one without a vendor gets it:
 * armv7-linux-gnueabihf would have no operating system. */
const char *llvm_triple(tec_context *cx, const target *machine)
{
    return llvm_take_message(cx, LLVMNormalizeTargetTriple(machine->triple));
}

/* The description that LLVM's code generator works from; the caller disposes of it. `plain_cpu` has no
 * features of its own, so the features of the target are all that code may use. */
LLVMTargetMachineRef llvm_target_machine(tec_context *cx, const target *machine)
{
    /* LLVM's registry of targets belongs to the process and may be filled only once. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    LLVMTargetRef target_ref;
    char *message = NULL;
    const char *triple = llvm_triple(cx, machine);
    pthread_once(&once, register_targets);
    if (LLVMGetTargetFromTriple(triple, &target_ref, &message)) {
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){0}, "LLVM has no target for the triple '%s': %s",
                         machine->triple, llvm_take_message(cx, message));
    }
    return LLVMCreateTargetMachine(target_ref, triple, machine->arch->plain_cpu, machine->features,
                                   LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
}

bool llvm_optimise(llvm_gen *gen)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(gen->m, passes, gen->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return true;
    BASE_BUG(gen->cx, "LLVM's passes failed: %s", llvm_take_error(gen->cx, error));
    return false;
}

/* What one emission has of LLVM's. */
typedef struct {
    LLVMModuleRef copy;
    LLVMMemoryBufferRef buffer;
} emission;

static void end_emission(void *e)
{
    LLVMDisposeMemoryBuffer(((emission *)e)->buffer);
    LLVMDisposeModule(((emission *)e)->copy);
}

/* Emitting changes a module, and so does hiding what walks, so both get a copy. */
bool llvm_emit(llvm_gen *gen, bool assembly, const void **data, size_t *size)
{
    emission e = {.copy = LLVMCloneModule(gen->m)};
    char *message = NULL;
    base_held held;
    base_hold(gen->cx, &held, end_emission, &e);
    llvm_hide_walkers(e.copy);
    bool failed = LLVMTargetMachineEmitToMemoryBuffer(
        gen->machine, e.copy, assembly ? LLVMAssemblyFile : LLVMObjectFile, &message, &e.buffer);
    if (failed) {
        BASE_BUG(gen->cx, "LLVM could not emit code for '%s': %s", gen->t->triple,
                 llvm_take_message(gen->cx, message));
    } else {
        *size = LLVMGetBufferSize(e.buffer);
        *data = base_copy(gen->cx, LLVMGetBufferStart(e.buffer), *size);
    }
    base_drop(&held);
    return !failed;
}
