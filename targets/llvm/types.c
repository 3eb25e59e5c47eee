/* targets/llvm/types.c -- dtypes as LLVM types, constants, and calls of LLVM's own intrinsics. */
#include <string.h>

#include "targets/llvm/gen.h"

LLVMTypeRef llvm_with_lanes(LLVMTypeRef scalar, int lanes)
{
    return lanes == 1 ? scalar : LLVMVectorType(scalar, (unsigned)lanes);
}

int llvm_lanes(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

static LLVMTypeRef scalar_of(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

static LLVMTypeRef scalar_type(llvm_gen *g, base_dtype t, bool memory)
{
    if (t.code == kDLOpaqueHandle)
        return g->ptr;
    if (t.code == kDLFloat && t.bits == 32)
        return g->f32;
    if (t.code == kDLFloat && t.bits == 64)
        return g->f64;
    if (base_is_float(t))
        return g->i16;
    if (base_is_bool(t))
        return memory ? g->i8 : g->i1;
    return LLVMIntTypeInContext(g->c, (unsigned)(memory ? (t.bits + 7) / 8 * 8 : t.bits));
}

LLVMTypeRef llvm_type(llvm_gen *g, base_dtype t)
{
    return llvm_with_lanes(scalar_type(g, t, false), t.lanes);
}

LLVMTypeRef llvm_memory_type(llvm_gen *g, base_dtype t)
{
    return llvm_with_lanes(scalar_type(g, t, true), t.lanes);
}

static LLVMValueRef splat_constant(LLVMValueRef scalar, int lanes)
{
    LLVMValueRef all[1024];
    for (int i = 0; i < lanes; i++)
        all[i] = scalar;
    return LLVMConstVector(all, (unsigned)lanes);
}

LLVMValueRef llvm_splat(llvm_gen *g, LLVMValueRef scalar, int lanes)
{
    if (lanes == 1)
        return scalar;
    if (LLVMIsConstant(scalar) && lanes <= 1024)
        return splat_constant(scalar, lanes);
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)lanes);
    LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0);
    LLVMValueRef one = LLVMBuildInsertElement(g->b, LLVMGetPoison(type), scalar, zero, "");
    return LLVMBuildShuffleVector(g->b, one, LLVMGetPoison(type),
                                  LLVMConstNull(LLVMVectorType(g->i32, (unsigned)lanes)), "");
}

LLVMValueRef llvm_int_like(llvm_gen *g, LLVMTypeRef t, int64_t value)
{
    return llvm_splat(g, LLVMConstInt(scalar_of(t), (unsigned long long)value, 1), llvm_lanes(t));
}

LLVMValueRef llvm_float_like(llvm_gen *g, LLVMTypeRef t, double value)
{
    return llvm_splat(g, LLVMConstReal(scalar_of(t), value), llvm_lanes(t));
}

LLVMValueRef llvm_constant(llvm_gen *g, base_dtype t, const ir_expr *e)
{
    LLVMTypeRef type = llvm_type(g, t);
    if (e->op == IR_INT)
        return llvm_int_like(g, type, base_is_bool(t) ? e->i != 0 : e->i);
    if (t.bits >= 32)
        return llvm_float_like(g, type, e->f);
    return llvm_int_like(g, type,
                         t.code == kDLBfloat ? base_double_to_bfloat(e->f) : base_double_to_half(e->f));
}

LLVMValueRef llvm_intrinsic(llvm_gen *g, const char *name, LLVMTypeRef *types, int n_types,
                            LLVMValueRef *args, int n)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id) {
        BASE_BUG(g->cx, "LLVM has no intrinsic '%s'", name);
        return args[0];
    }
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(g->m, id, types, (size_t)n_types);
    return LLVMBuildCall2(g->b, LLVMGlobalGetValueType(f), f, args, (unsigned)n, "");
}

LLVMValueRef llvm_intrinsic1(llvm_gen *g, const char *name, LLVMTypeRef type, LLVMValueRef a)
{
    return llvm_intrinsic(g, name, &type, 1, &a, 1);
}

LLVMValueRef llvm_intrinsic2(llvm_gen *g, const char *name, LLVMTypeRef type, LLVMValueRef a, LLVMValueRef b)
{
    return llvm_intrinsic(g, name, &type, 1, (LLVMValueRef[]){a, b}, 2);
}
