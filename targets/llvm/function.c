/* targets/llvm/function.c -- the frame of every function: attributes, stack slots, floating-point mode, the
 * one way out.
 *
 *     entry:  stack slots only, then a jump to start
 *     start:  keep the caller's floating-point mode, switch denormals off; the body
 *     exit:   restore the mode; return the status
 *
 * All ways out pass through exit, so that the caller's mode is always restored.
 */
#include <string.h>

#include "targets/llvm/gen.h"

LLVMTypeRef llvm_kernel_type(llvm_gen *g)
{
    return LLVMFunctionType(g->i32, (LLVMTypeRef[]){g->ptr, g->ptr, g->ptr}, 3, 0);
}

LLVMTypeRef llvm_body_type(llvm_gen *g)
{
    return LLVMFunctionType(g->i32, (LLVMTypeRef[]){g->ptr, g->ptr, g->i64, g->i64, g->i32}, 5, 0);
}

LLVMBasicBlockRef llvm_block(llvm_gen *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->c, g->f->function, name);
}

static void set_text(llvm_gen *g, LLVMValueRef f, const char *key, const char *value)
{
    LLVMAttributeRef a =
        LLVMCreateStringAttribute(g->c, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

static void set_flag(llvm_gen *g, LLVMValueRef f, unsigned at, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(f, at, LLVMCreateEnumAttribute(g->c, kind, 0));
}

/* The CPU's name picks the scheduling model only; features are explicit. */
void llvm_set_attributes(llvm_gen *g, LLVMValueRef f)
{
    const char *bits = g->t->vector_bits == 512 ? "512" : g->t->vector_bits == 256 ? "256" : "128";
    set_text(g, f, "target-cpu", g->t->arch->plain_cpu);
    set_text(g, f, "tune-cpu", g->t->cpu);
    set_text(g, f, "target-features", g->t->features);
    set_text(g, f, "prefer-vector-width", bits);
    set_text(g, f, "min-legal-vector-width", bits);
    set_text(g, f, "no-builtins", "");
    if (g->floats)
        set_text(g, f, "denormal-fp-math", "preserve-sign,preserve-sign");
    set_flag(g, f, (unsigned)LLVMAttributeFunctionIndex, "nounwind");
}

LLVMValueRef llvm_entry_alloca(llvm_gen *g, LLVMTypeRef type, int64_t align, const char *name)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderAtEnd(g->b, g->f->entry);
    LLVMValueRef slot = LLVMBuildAlloca(g->b, type, name);
    if (align)
        LLVMSetAlignment(slot, (unsigned)align);
    LLVMPositionBuilderAtEnd(g->b, here);
    return slot;
}

/* ---- floating-point mode ---- */

/* The mode as a value: it is kept, and set with the bits that flush. */
static void keep_value(llvm_gen *g, const target_float_mode *m, LLVMTypeRef type)
{
    g->f->saved_mode = llvm_intrinsic(g, m->get, NULL, 0, NULL, 0);
    LLVMValueRef flush = LLVMBuildOr(g->b, g->f->saved_mode, LLVMConstInt(type, m->flush, 0), "");
    llvm_intrinsic(g, m->set, NULL, 0, &flush, 1);
}

/* The mode in memory: in one slot as it was, in another one with the bits that flush. */
static void keep_slot(llvm_gen *g, const target_float_mode *m, LLVMTypeRef type)
{
    LLVMValueRef saved = llvm_entry_alloca(g, type, m->bits / 8, "mode"),
                 ours = llvm_entry_alloca(g, type, m->bits / 8, "our.mode");
    llvm_intrinsic(g, m->get, NULL, 0, &saved, 1);
    LLVMValueRef mode = LLVMBuildLoad2(g->b, type, saved, "");
    LLVMBuildStore(g->b, LLVMBuildOr(g->b, mode, LLVMConstInt(type, m->flush, 0), ""), ours);
    llvm_intrinsic(g, m->set, NULL, 0, &ours, 1);
    g->f->saved_mode = saved;
}

static void keep_mode(llvm_gen *g)
{
    const target_float_mode *m = &g->t->arch->mode;
    LLVMTypeRef type = LLVMIntTypeInContext(g->c, (unsigned)m->bits);
    if (m->get)
        (m->in_memory ? keep_slot : keep_value)(g, m, type);
}

static void restore_mode(llvm_gen *g)
{
    if (!g->f->saved_mode)
        return;
    llvm_intrinsic(g, g->t->arch->mode.set, NULL, 0, &g->f->saved_mode, 1);
}

/* ---- begin and end ---- */

/* Opens a function and its frame; the builder stands at its body. llvm_end_function closes the way out. */
LLVMValueRef llvm_begin_function(llvm_gen *g, llvm_function *f, const char *name, bool exported,
                                 LLVMTypeRef type)
{
    *f = (llvm_function){.function = LLVMAddFunction(g->m, name, type)};
    g->f = f;
    LLVMSetLinkage(f->function, exported ? LLVMExternalLinkage : LLVMInternalLinkage);
    llvm_set_attributes(g, f->function);
    set_flag(g, f->function, 1, "nonnull");
    set_flag(g, f->function, 2, "readonly");
    f->env = LLVMGetParam(f->function, 0);
    f->entry = llvm_block(g, "entry");
    LLVMPositionBuilderAtEnd(g->b, llvm_block(g, "start"));
    f->exit = llvm_block(g, "exit");
    f->status = llvm_entry_alloca(g, g->i32, 4, "status");
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, 0, 0), f->status);
    if (g->floats)
        keep_mode(g);
    return f->function;
}

void llvm_end_function(llvm_gen *g)
{
    LLVMBuildBr(g->b, g->f->exit);
    LLVMPositionBuilderAtEnd(g->b, g->f->exit);
    restore_mode(g);
    LLVMBuildRet(g->b, LLVMBuildLoad2(g->b, g->i32, g->f->status, ""));
    LLVMPositionBuilderAtEnd(g->b, g->f->entry);
    LLVMBuildBr(g->b, LLVMGetNextBasicBlock(g->f->entry));
    LLVMMoveBasicBlockAfter(g->f->exit, LLVMGetLastBasicBlock(g->f->function));
}

LLVMTypeRef llvm_env_type(llvm_gen *g)
{
    LLVMTypeRef fields[LLVM_ENV_FIELDS];
    for (int i = 0; i < LLVM_ENV_FIELDS; i++)
        fields[i] = g->ptr;
    fields[LLVM_ENV_ABI] = fields[LLVM_ENV_N_WORKERS] = g->i32;
    fields[LLVM_ENV_THREAD_STRIDE] = g->i64;
    return LLVMStructTypeInContext(g->c, fields, LLVM_ENV_FIELDS, 0);
}

LLVMValueRef llvm_env_field(llvm_gen *g, LLVMTypeRef type, llvm_env field)
{
    LLVMValueRef at =
        LLVMConstInt(g->i64, LLVMOffsetOfElement(g->layout, llvm_env_type(g), (unsigned)field), 0);
    LLVMValueRef v =
        LLVMBuildLoad2(g->b, type, LLVMBuildInBoundsGEP2(g->b, g->i8, g->f->env, &at, 1, ""), "");
    LLVMSetMetadata(v, LLVMGetMDKindIDInContext(g->c, "invariant.load", 14),
                    LLVMMetadataAsValue(g->c, LLVMMDNodeInContext2(g->c, NULL, 0)));
    return v;
}
