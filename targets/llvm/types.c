/* targets/llvm/types.c -- dtypes as LLVM types, constants, and calls of LLVM's own intrinsics. */
#include <string.h>

#include "targets/llvm/gen.h"

LLVMTypeRef llvm_with_lanes(LLVMTypeRef scalar, int lanes)
{
    return lanes == 1 ? scalar : LLVMVectorType(scalar, (unsigned)lanes);
}

int llvm_lanes(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(type) : 1;
}

static LLVMTypeRef scalar_of(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

static LLVMTypeRef scalar_type(llvm_gen *gen, base_dtype dtype, bool memory)
{
    if (dtype.code == kDLOpaqueHandle)
        return gen->ptr;
    if (dtype.code == kDLFloat && dtype.bits == 32)
        return gen->f32;
    if (dtype.code == kDLFloat && dtype.bits == 64)
        return gen->f64;
    if (base_is_float(dtype))
        return gen->i16;
    if (base_is_bool(dtype))
        return memory ? gen->i8 : gen->i1;
    return LLVMIntTypeInContext(gen->c, (unsigned)(memory ? (dtype.bits + 7) / 8 * 8 : dtype.bits));
}

LLVMTypeRef llvm_type(llvm_gen *gen, base_dtype dtype)
{
    return llvm_with_lanes(scalar_type(gen, dtype, false), dtype.lanes);
}

LLVMTypeRef llvm_memory_type(llvm_gen *gen, base_dtype dtype)
{
    return llvm_with_lanes(scalar_type(gen, dtype, true), dtype.lanes);
}

static LLVMValueRef splat_constant(LLVMValueRef scalar, int lanes)
{
    LLVMValueRef all[1024];
    for (int i = 0; i < lanes; i++)
        all[i] = scalar;
    return LLVMConstVector(all, (unsigned)lanes);
}

LLVMValueRef llvm_splat(llvm_gen *gen, LLVMValueRef scalar, int lanes)
{
    if (lanes == 1)
        return scalar;
    if (LLVMIsConstant(scalar) && lanes <= 1024)
        return splat_constant(scalar, lanes);
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)lanes);
    LLVMValueRef zero = LLVMConstInt(gen->i32, 0, 0);
    LLVMValueRef one = LLVMBuildInsertElement(gen->b, LLVMGetPoison(type), scalar, zero, "");
    return LLVMBuildShuffleVector(gen->b, one, LLVMGetPoison(type),
                                  LLVMConstNull(LLVMVectorType(gen->i32, (unsigned)lanes)), "");
}

LLVMValueRef llvm_int_like(llvm_gen *gen, LLVMTypeRef type, int64_t value)
{
    return llvm_splat(gen, LLVMConstInt(scalar_of(type), (unsigned long long)value, 1), llvm_lanes(type));
}

LLVMValueRef llvm_float_like(llvm_gen *gen, LLVMTypeRef type, double value)
{
    return llvm_splat(gen, LLVMConstReal(scalar_of(type), value), llvm_lanes(type));
}

LLVMValueRef llvm_constant(llvm_gen *gen, base_dtype dtype, const ir_expr *expr)
{
    LLVMTypeRef type = llvm_type(gen, dtype);
    if (expr->op == IR_INT)
        return llvm_int_like(gen, type, base_is_bool(dtype) ? expr->i != 0 : expr->i);
    if (dtype.bits >= 32)
        return llvm_float_like(gen, type, expr->f);
    return llvm_int_like(
        gen, type, dtype.code == kDLBfloat ? base_double_to_bfloat(expr->f) : base_double_to_half(expr->f));
}

LLVMValueRef llvm_intrinsic(llvm_gen *gen, const char *name, LLVMTypeRef *types, int n_types,
                            LLVMValueRef *args, int n)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id) {
        BASE_BUG(gen->cx, "LLVM has no intrinsic '%s'", name);
        return args[0];
    }
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(gen->m, id, types, (size_t)n_types);
    return LLVMBuildCall2(gen->b, LLVMGlobalGetValueType(f), f, args, (unsigned)n, "");
}

LLVMValueRef llvm_intrinsic1(llvm_gen *gen, const char *name, LLVMTypeRef type, LLVMValueRef left)
{
    return llvm_intrinsic(gen, name, &type, 1, &left, 1);
}

LLVMValueRef llvm_intrinsic2(llvm_gen *gen, const char *name, LLVMTypeRef type, LLVMValueRef left,
                             LLVMValueRef right)
{
    return llvm_intrinsic(gen, name, &type, 1, (LLVMValueRef[]){left, right}, 2);
}
