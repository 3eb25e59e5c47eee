/* targets/llvm/import.c -- functions that a schedule imports: from C or from LLVM's text, into the module of
 * the kernel.
 *
 *     pragma(C.y, import_c, "dot.c")                          a file, by its ending;
 *                                                               relative to the working directory
 *     pragma(C.y, import_llvm, "define i32 @dot(ptr %a) { ... }")
 *
 * lower/imports.c has put them on the program. They become the module's own: internal, with the CPU and the
 * features of the kernel, so that LLVM may inline and drop them. They may call what kernels may (memcpy,
 * memset, memmove) and each other. What the text says of its target gives way to the module's.
 */
#include <string.h>

#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>

#include "ir/build.h"
#include "ir/walk.h"
#include "targets/llvm/gen.h"

static bool is_file(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);

    return n > m && !strcmp(text + n - m, ending) && !strpbrk(text, "\n{");
}

/* The text that a note stands for, and where it is from. */
static const char *source(tec_context *cx, const ir_expr *value, const char *ending, base_loc *loc)
{
    size_t size;

    *loc = value->loc;
    if (!is_file(value->string, ending))
        return value->string;
    *loc = (base_loc){.file = value->string, .line = 1};
    return base_read_file(cx, value->string, &size);
}

/* ---- modules ---- */

static LLVMModuleRef parse(llvm_gen *gen, const char *text, size_t size, base_loc loc)
{
    /* The reader takes the buffer. */
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, size, loc.file ? loc.file : "import");
    LLVMModuleRef m = NULL;
    char *message = NULL;

    if (!LLVMParseIRInContext(gen->c, buffer, &m, &message))
        return m;
    return base_fail(gen->cx, TEC_INVALID, loc, "LLVM refuses the imported text:\n%s",
                     llvm_take_message(gen->cx, message));
}

static bool may_call(const char *name)
{
    static const char *const known[] = {"memcpy", "memset", "memmove"};

    for (int i = 0; i < BASE_COUNT(known); i++)
        if (!strcmp(name, known[i]))
            return true;
    return !strncmp(name, "llvm.", 5);
}

/* Imported code may call what it defines, and the few functions that kernels may import; it must define
 * something. */
static bool check_functions(llvm_gen *gen, LLVMModuleRef module, base_loc loc)
{
    int defined = 0;

    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        size_t n;
        const char *name = LLVMGetValueName2(f, &n);
        LLVMValueRef known = LLVMGetNamedFunction(gen->m, name);
        bool is_declared = LLVMIsDeclaration(f);

        defined += !is_declared;
        if (is_declared && LLVMGetFirstUse(f) && !may_call(name) && !known)
            base_fail(gen->cx, TEC_INVALID, loc, "the imported code calls '%s', which it does not define",
                      name);
        else if (!is_declared && known && !LLVMIsDeclaration(known))
            base_fail(gen->cx, TEC_INVALID, loc, "two imports define '%s'", name);
    }
    if (!defined && !base_failed(gen->cx))
        base_fail(gen->cx, TEC_INVALID, loc, "the imported code defines no function");
    return !base_failed(gen->cx);
}

/* The functions of module as they would be if the kernel's own writer had made them. */
static void adopt(llvm_gen *gen, LLVMModuleRef module)
{
    LLVMSetTarget(module, LLVMGetTarget(gen->m));
    LLVMSetDataLayout(module, LLVMGetDataLayoutStr(gen->m));
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (!LLVMIsDeclaration(f))
            llvm_set_attributes(gen, f);
    }
}

static void make_internal(llvm_gen *gen, const base_vec *names)
{
    for (int i = 0; i < names->n; i++)
        LLVMSetLinkage(LLVMGetNamedFunction(gen->m, names->at[i]), LLVMInternalLinkage);
}

/* Links the user's module into the kernel's. LLVMLinkModules2 takes `module` in any case, so it is disposed
 * of only before that. */
static bool add_module(llvm_gen *gen, LLVMModuleRef module, base_loc loc)
{
    base_vec names = {0};

    if (!check_functions(gen, module, loc)) {
        LLVMDisposeModule(module);
        return false;
    }
    adopt(gen, module);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        size_t n;
        if (!LLVMIsDeclaration(f))
            base_push(gen->cx, &names, base_strdup(gen->cx, LLVMGetValueName2(f, &n)));
    }
    if (LLVMLinkModules2(gen->m, module)) {
        base_fail(gen->cx, TEC_INVALID, loc, "LLVM cannot link the imported code");
        return false;
    }
    make_internal(gen, &names);
    return true;
}

static bool import(llvm_gen *gen, const ir_expr *value, bool is_c)
{
    base_loc loc;
    const char *text = source(gen->cx, value, is_c ? ".c" : ".ll", &loc);
    size_t size = text ? strlen(text) : 0;

    if (text && is_c)
        text = llvm_clang(gen->cx, gen->t, gen->keep_denormals, text, loc, &size);
    LLVMModuleRef m = text ? parse(gen, text, size, loc) : NULL;
    return m && add_module(gen, m, loc);
}

static bool is_known(const llvm_gen *gen, const ir_expr *value)
{
    for (int i = 0; i < gen->imports.n; i++)
        if (ir_same(gen->imports.at[i], value))
            return true;
    return false;
}

bool llvm_import(llvm_gen *gen, const ir_program *program)
{
    for (const ir_note *note = program->notes; note; note = note->next) {
        bool is_c = !strncmp(note->key, "import_c.", 9);

        if ((!is_c && strncmp(note->key, "import_llvm.", 12)) || is_known(gen, note->value))
            continue;
        base_push(gen->cx, &gen->imports, (void *)note->value);
        if (!import(gen, note->value, is_c))
            return false;
    }
    return true;
}

/* ---- calls ---- */

bool llvm_imported_fits(llvm_gen *gen, const ir_expr *call, LLVMValueRef function, LLVMTypeRef type)
{
    if (LLVMGlobalGetValueType(function) == type)
        return true;
    const char *have = llvm_take_message(gen->cx, LLVMPrintTypeToString(LLVMGlobalGetValueType(function)));
    const char *want = llvm_take_message(gen->cx, LLVMPrintTypeToString(type));
    base_fail(gen->cx, TEC_INVALID, call->loc,
              "the imported function '%s' has the type '%s', but it is called as '%s'", call->call.name, have,
              want);
    return false;
}

void llvm_copy_attributes(LLVMValueRef function, LLVMValueRef call)
{
    for (unsigned i = 0; i <= LLVMCountParams(function); i++) {
        LLVMAttributeRef at[32];
        unsigned n = LLVMGetAttributeCountAtIndex(function, i);

        if (n > BASE_COUNT(at))
            continue;
        LLVMGetAttributesAtIndex(function, i, at);
        for (unsigned k = 0; k < n; k++)
            LLVMAddCallSiteAttribute(call, i, at[k]);
    }
}
