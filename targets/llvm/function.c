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

LLVMTypeRef llvm_kernel_type(llvm_gen *gen)
{
    return LLVMFunctionType(gen->i32, (LLVMTypeRef[]){gen->ptr, gen->ptr, gen->ptr}, 3, 0);
}

LLVMTypeRef llvm_body_type(llvm_gen *gen)
{
    return LLVMFunctionType(gen->i32, (LLVMTypeRef[]){gen->ptr, gen->ptr, gen->i64, gen->i64, gen->i32}, 5,
                            0);
}

LLVMBasicBlockRef llvm_block(llvm_gen *gen, const char *name)
{
    return LLVMAppendBasicBlockInContext(gen->c, gen->f->function, name);
}

static void set_text(llvm_gen *gen, LLVMValueRef function, const char *key, const char *value)
{
    LLVMAttributeRef a =
        LLVMCreateStringAttribute(gen->c, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

static void set_flag(llvm_gen *gen, LLVMValueRef function, unsigned at, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, at, LLVMCreateEnumAttribute(gen->c, kind, 0));
}

/* The CPU's name picks the scheduling model only; features are explicit. */
void llvm_set_attributes(llvm_gen *gen, LLVMValueRef function)
{
    const char *bits = gen->t->vector_bits == 512 ? "512" : gen->t->vector_bits == 256 ? "256" : "128";
    set_text(gen, function, "target-cpu", gen->t->arch->plain_cpu);
    set_text(gen, function, "tune-cpu", gen->t->cpu);
    set_text(gen, function, "target-features", gen->t->features);
    set_text(gen, function, "prefer-vector-width", bits);
    set_text(gen, function, "min-legal-vector-width", bits);
    set_text(gen, function, "no-builtins", "");
    if (gen->floats)
        set_text(gen, function, "denormal-fp-math", "preserve-sign,preserve-sign");
    set_flag(gen, function, (unsigned)LLVMAttributeFunctionIndex, "nounwind");
}

LLVMValueRef llvm_entry_alloca(llvm_gen *gen, LLVMTypeRef type, int64_t align, const char *name)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(gen->b);
    LLVMPositionBuilderAtEnd(gen->b, gen->f->entry);
    LLVMValueRef slot = LLVMBuildAlloca(gen->b, type, name);
    if (align)
        LLVMSetAlignment(slot, (unsigned)align);
    LLVMPositionBuilderAtEnd(gen->b, here);
    return slot;
}

/* ---- floating-point mode ---- */

/* The mode as a value: it is kept, and set with the bits that flush. */
static void keep_value(llvm_gen *gen, const target_float_mode *mode, LLVMTypeRef type)
{
    gen->f->saved_mode = llvm_intrinsic(gen, mode->get, NULL, 0, NULL, 0);
    LLVMValueRef flush = LLVMBuildOr(gen->b, gen->f->saved_mode, LLVMConstInt(type, mode->flush, 0), "");
    llvm_intrinsic(gen, mode->set, NULL, 0, &flush, 1);
}

/* The mode in memory: in one slot as it was, in another one with the bits that flush. */
static void keep_slot(llvm_gen *gen, const target_float_mode *self, LLVMTypeRef type)
{
    LLVMValueRef saved = llvm_entry_alloca(gen, type, self->bits / 8, "mode"),
                 ours = llvm_entry_alloca(gen, type, self->bits / 8, "our.mode");
    llvm_intrinsic(gen, self->get, NULL, 0, &saved, 1);
    LLVMValueRef mode = LLVMBuildLoad2(gen->b, type, saved, "");
    LLVMBuildStore(gen->b, LLVMBuildOr(gen->b, mode, LLVMConstInt(type, self->flush, 0), ""), ours);
    llvm_intrinsic(gen, self->set, NULL, 0, &ours, 1);
    gen->f->saved_mode = saved;
}

static void keep_mode(llvm_gen *gen)
{
    const target_float_mode *m = &gen->t->arch->mode;
    LLVMTypeRef type = LLVMIntTypeInContext(gen->c, (unsigned)m->bits);
    if (m->get)
        (m->in_memory ? keep_slot : keep_value)(gen, m, type);
}

static void restore_mode(llvm_gen *gen)
{
    if (!gen->f->saved_mode)
        return;
    llvm_intrinsic(gen, gen->t->arch->mode.set, NULL, 0, &gen->f->saved_mode, 1);
}

/* ---- begin and end ---- */

/* Opens a function and its frame; the builder stands at its body. llvm_end_function closes the way out. */
LLVMValueRef llvm_begin_function(llvm_gen *gen, llvm_function *function, const char *name, bool exported,
                                 LLVMTypeRef type)
{
    *function = (llvm_function){.function = LLVMAddFunction(gen->m, name, type)};
    gen->f = function;
    LLVMSetLinkage(function->function, exported ? LLVMExternalLinkage : LLVMInternalLinkage);
    llvm_set_attributes(gen, function->function);
    set_flag(gen, function->function, 1, "nonnull");
    set_flag(gen, function->function, 2, "readonly");
    function->env = LLVMGetParam(function->function, 0);
    function->entry = llvm_block(gen, "entry");
    LLVMPositionBuilderAtEnd(gen->b, llvm_block(gen, "start"));
    function->exit = llvm_block(gen, "exit");
    function->status = llvm_entry_alloca(gen, gen->i32, 4, "status");
    LLVMBuildStore(gen->b, LLVMConstInt(gen->i32, 0, 0), function->status);
    if (gen->floats)
        keep_mode(gen);
    return function->function;
}

void llvm_end_function(llvm_gen *gen)
{
    LLVMBuildBr(gen->b, gen->f->exit);
    LLVMPositionBuilderAtEnd(gen->b, gen->f->exit);
    restore_mode(gen);
    LLVMBuildRet(gen->b, LLVMBuildLoad2(gen->b, gen->i32, gen->f->status, ""));
    LLVMPositionBuilderAtEnd(gen->b, gen->f->entry);
    LLVMBuildBr(gen->b, LLVMGetNextBasicBlock(gen->f->entry));
    LLVMMoveBasicBlockAfter(gen->f->exit, LLVMGetLastBasicBlock(gen->f->function));
}

LLVMTypeRef llvm_env_type(llvm_gen *gen)
{
    LLVMTypeRef fields[LLVM_ENV_FIELDS];
    for (int i = 0; i < LLVM_ENV_FIELDS; i++)
        fields[i] = gen->ptr;
    fields[LLVM_ENV_ABI] = fields[LLVM_ENV_N_WORKERS] = gen->i32;
    fields[LLVM_ENV_THREAD_STRIDE] = fields[LLVM_ENV_TURN] = gen->i64;
    return LLVMStructTypeInContext(gen->c, fields, LLVM_ENV_FIELDS, 0);
}

LLVMValueRef llvm_env_field(llvm_gen *gen, LLVMTypeRef type, llvm_env field)
{
    LLVMValueRef at =
        LLVMConstInt(gen->i64, LLVMOffsetOfElement(gen->layout, llvm_env_type(gen), (unsigned)field), 0);
    LLVMValueRef v =
        LLVMBuildLoad2(gen->b, type, LLVMBuildInBoundsGEP2(gen->b, gen->i8, gen->f->env, &at, 1, ""), "");
    LLVMSetMetadata(v, LLVMGetMDKindIDInContext(gen->c, "invariant.load", 14),
                    LLVMMetadataAsValue(gen->c, LLVMMDNodeInContext2(gen->c, NULL, 0)));
    return v;
}
