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

static LLVMModuleRef parse(llvm_gen *g, const char *text, size_t size, base_loc loc)
{
    /* The reader takes the buffer. */
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, size, loc.file ? loc.file : "import");
    LLVMModuleRef m = NULL;
    char *message = NULL;

    if (!LLVMParseIRInContext(g->c, buffer, &m, &message))
        return m;
    return base_fail(g->cx, TEC_INVALID, loc, "LLVM does not take the imported text:\n%s",
                     llvm_take_message(g->cx, message));
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
static bool check_functions(llvm_gen *g, LLVMModuleRef m, base_loc loc)
{
    int defined = 0;

    for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f)) {
        size_t n;
        const char *name = LLVMGetValueName2(f, &n);
        LLVMValueRef known = LLVMGetNamedFunction(g->m, name);
        bool is_declared = LLVMIsDeclaration(f);

        defined += !is_declared;
        if (is_declared && LLVMGetFirstUse(f) && !may_call(name) && !known)
            base_fail(g->cx, TEC_INVALID, loc, "the imported code calls '%s', which it does not define",
                      name);
        else if (!is_declared && known && !LLVMIsDeclaration(known))
            base_fail(g->cx, TEC_INVALID, loc, "two imports define '%s'", name);
    }
    if (!defined && !base_failed(g->cx))
        base_fail(g->cx, TEC_INVALID, loc, "the imported code defines no function");
    return !base_failed(g->cx);
}

/* The functions of m as they would be if the kernel's own writer had made them. */
static void adopt(llvm_gen *g, LLVMModuleRef m)
{
    LLVMSetTarget(m, LLVMGetTarget(g->m));
    LLVMSetDataLayout(m, LLVMGetDataLayoutStr(g->m));
    for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f)) {
        if (!LLVMIsDeclaration(f))
            llvm_set_attributes(g, f);
    }
}

static void make_internal(llvm_gen *g, const base_vec *names)
{
    for (int i = 0; i < names->n; i++)
        LLVMSetLinkage(LLVMGetNamedFunction(g->m, names->at[i]), LLVMInternalLinkage);
}

/* Links the user's module into the kernel's. LLVMLinkModules2 takes `m` in any case, so it is disposed of
 * only before that. */
static bool add_module(llvm_gen *g, LLVMModuleRef m, base_loc loc)
{
    base_vec names = {0};

    if (!check_functions(g, m, loc)) {
        LLVMDisposeModule(m);
        return false;
    }
    adopt(g, m);
    for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f)) {
        size_t n;
        if (!LLVMIsDeclaration(f))
            base_push(g->cx, &names, base_strdup(g->cx, LLVMGetValueName2(f, &n)));
    }
    if (LLVMLinkModules2(g->m, m)) {
        base_fail(g->cx, TEC_INVALID, loc, "LLVM cannot link the imported code");
        return false;
    }
    make_internal(g, &names);
    return true;
}

static bool import(llvm_gen *g, const ir_expr *value, bool is_c)
{
    base_loc loc;
    const char *text = source(g->cx, value, is_c ? ".c" : ".ll", &loc);
    size_t size = text ? strlen(text) : 0;

    if (text && is_c)
        text = llvm_clang(g->cx, g->t, g->keep_denormals, text, loc, &size);
    LLVMModuleRef m = text ? parse(g, text, size, loc) : NULL;
    return m && add_module(g, m, loc);
}

static bool is_known(const llvm_gen *g, const ir_expr *value)
{
    for (int i = 0; i < g->imports.n; i++)
        if (ir_same(g->imports.at[i], value))
            return true;
    return false;
}

bool llvm_import(llvm_gen *g, const ir_program *p)
{
    for (const ir_note *note = p->notes; note; note = note->next) {
        bool is_c = !strncmp(note->key, "import_c.", 9);

        if ((!is_c && strncmp(note->key, "import_llvm.", 12)) || is_known(g, note->value))
            continue;
        base_push(g->cx, &g->imports, (void *)note->value);
        if (!import(g, note->value, is_c))
            return false;
    }
    return true;
}

/* ---- calls ---- */

bool llvm_imported_fits(llvm_gen *g, const ir_expr *call, LLVMValueRef f, LLVMTypeRef type)
{
    if (LLVMGlobalGetValueType(f) == type)
        return true;
    const char *have = llvm_take_message(g->cx, LLVMPrintTypeToString(LLVMGlobalGetValueType(f)));
    const char *want = llvm_take_message(g->cx, LLVMPrintTypeToString(type));
    base_fail(g->cx, TEC_INVALID, call->loc,
              "the imported function '%s' has the type '%s', it is called as '%s'", call->call.name, have,
              want);
    return false;
}

void llvm_copy_attributes(LLVMValueRef f, LLVMValueRef call)
{
    for (unsigned i = 0; i <= LLVMCountParams(f); i++) {
        LLVMAttributeRef at[32];
        unsigned n = LLVMGetAttributeCountAtIndex(f, i);

        if (n > BASE_COUNT(at))
            continue;
        LLVMGetAttributesAtIndex(f, i, at);
        for (unsigned k = 0; k < n; k++)
            LLVMAddCallSiteAttribute(call, i, at[k]);
    }
}
