/* Some options of LLVM count for a whole process. A program that uses LLVM itself, beside tec, keeps its own.
 *
 * -disable-lsr is the one that tec could profit from: the code that the program gets of a loop is the same
 * before and after tec has compiled something, and another one once that option is really set.
 */
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "tests/embed/kit.h"

/* A loop whose addresses LLVM's strength reduction changes. */
static const char loop[] = "define void @f(ptr %a, ptr %b, i64 %n) {\n"
                           "entry:\n"
                           "  br label %body\n"
                           "body:\n"
                           "  %i = phi i64 [ 0, %entry ], [ %next, %body ]\n"
                           "  %i7 = mul i64 %i, 7\n"
                           "  %from = getelementptr i32, ptr %a, i64 %i7\n"
                           "  %v = load i32, ptr %from\n"
                           "  %i11 = mul i64 %i, 11\n"
                           "  %to = getelementptr i32, ptr %b, i64 %i11\n"
                           "  store i32 %v, ptr %to\n"
                           "  %next = add i64 %i, 1\n"
                           "  %more = icmp slt i64 %next, %n\n"
                           "  br i1 %more, label %body, label %exit\n"
                           "exit:\n"
                           "  ret void\n"
                           "}\n";

/* The assembly that the program makes of it, with LLVM alone. */
static char *assembly(void)
{
    LLVMContextRef c = LLVMContextCreate();
    char *message = NULL, *triple = LLVMGetDefaultTargetTriple();
    LLVMMemoryBufferRef text = LLVMCreateMemoryBufferWithMemoryRangeCopy(loop, strlen(loop), "loop"), out;
    LLVMModuleRef m;
    LLVMTargetRef t;

    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    cr_assert(!LLVMParseIRInContext(c, text, &m, &message), "%s", message);
    cr_assert(!LLVMGetTargetFromTriple(triple, &t, &message), "%s", message);
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(t, triple, "", "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
    cr_assert(!LLVMTargetMachineEmitToMemoryBuffer(machine, m, LLVMAssemblyFile, &message, &out), "%s",
              message);
    char *copy = strndup(LLVMGetBufferStart(out), LLVMGetBufferSize(out));
    LLVMDisposeMemoryBuffer(out);
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeModule(m);
    LLVMContextDispose(c);
    LLVMDisposeMessage(triple);
    return copy;
}

Test(options, of_llvm_stay_those_of_the_program)
{
    static const char *const off[] = {"program", "-disable-lsr"};
    char *before = assembly();
    bytes b = compile_once(&small);
    char *after = assembly();

    cr_assert_str_eq(before, after);
    LLVMParseCommandLineOptions(2, off, NULL);
    char *reduced = assembly();
    cr_assert_str_neq(reduced, after, "the option changes nothing, so this test sees nothing");
    free(before);
    free(after);
    free(reduced);
    free(b.data);
}
