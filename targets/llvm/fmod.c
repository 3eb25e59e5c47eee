/* targets/llvm/fmod.c -- the exact floating-point remainder, as a function inside the module.
 *
 * LLVM's frem is a call of libm's fmod, which kernels must not import. The remainder is found by long
 * division of the significands: with x = mx * 2^ex and y = my * 2^ey, ex >= ey, it is ((mx * 2^(ex - ey)) mod
 * my) * 2^ey, and the power is multiplied in as many bits at a time as 64-bit integers hold beside my. Lanes
 * go through it one by one. Denormals count as zero, as everywhere in kernels.
 */
#include <math.h>

#include "targets/llvm/gen.h"

/* The type that the function is written for. */
typedef struct {
    LLVMTypeRef real, bits;
    int fraction; /* bits of the fraction */
    int step;     /* bits of quotient for each division */
    uint64_t sign, infinity, one;
} layout;

static LLVMValueRef u64(llvm_gen *gen, uint64_t v)
{
    return LLVMConstInt(gen->i64, v, 0);
}

static LLVMValueRef wide_bits(llvm_gen *gen, const layout *self, LLVMValueRef value)
{
    return LLVMBuildZExt(gen->b, LLVMBuildBitCast(gen->b, value, self->bits, ""), gen->i64, "");
}

static LLVMValueRef mantissa_of(llvm_gen *gen, const layout *self, LLVMValueRef value)
{
    return LLVMBuildOr(gen->b, LLVMBuildAnd(gen->b, value, u64(gen, self->one - 1), ""), u64(gen, self->one),
                       "");
}

/* The remainder of r * 2^left by my, where r < my. */
static LLVMValueRef divide(llvm_gen *gen, const layout *self, LLVMValueRef r0, LLVMValueRef left0,
                           LLVMValueRef my)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(gen->b), loop = llvm_block(gen, "divide"),
                      after = llvm_block(gen, "divided");
    LLVMBuildCondBr(gen->b, LLVMBuildICmp(gen->b, LLVMIntSGT, left0, u64(gen, 0), ""), loop, after);
    LLVMPositionBuilderAtEnd(gen->b, loop);
    LLVMValueRef r = LLVMBuildPhi(gen->b, gen->i64, ""), left = LLVMBuildPhi(gen->b, gen->i64, "");
    LLVMValueRef step = llvm_intrinsic2(gen, "llvm.umin", gen->i64, left, u64(gen, (uint64_t)self->step));
    LLVMValueRef next = LLVMBuildURem(gen->b, LLVMBuildShl(gen->b, r, step, ""), my, ""),
                 rest = LLVMBuildSub(gen->b, left, step, "");
    LLVMBuildCondBr(gen->b, LLVMBuildICmp(gen->b, LLVMIntNE, rest, u64(gen, 0), ""), loop, after);
    LLVMAddIncoming(r, (LLVMValueRef[]){r0, next}, (LLVMBasicBlockRef[]){before, loop}, 2);
    LLVMAddIncoming(left, (LLVMValueRef[]){left0, rest}, (LLVMBasicBlockRef[]){before, loop}, 2);
    LLVMPositionBuilderAtEnd(gen->b, after);
    LLVMValueRef result = LLVMBuildPhi(gen->b, gen->i64, "");
    LLVMAddIncoming(result, (LLVMValueRef[]){r0, next}, (LLVMBasicBlockRef[]){before, loop}, 2);
    return result;
}

/* rest * 2^(ey - bias - fraction) as a float with the sign of x; what is below the normal range is 0. */
static LLVMValueRef compose(llvm_gen *gen, const layout *self, LLVMValueRef rest, LLVMValueRef ey,
                            LLVMValueRef sign)
{
    LLVMValueRef args[] = {rest, LLVMConstInt(gen->i1, 0, 0)};
    LLVMValueRef zeros = llvm_intrinsic(gen, "llvm.ctlz", &gen->i64, 1, args, 2);
    LLVMValueRef shift = LLVMBuildSub(gen->b, zeros, u64(gen, (uint64_t)(63 - self->fraction)), "");
    LLVMValueRef e = LLVMBuildSub(gen->b, ey, shift, "");
    LLVMValueRef safe = LLVMBuildAnd(gen->b, shift, u64(gen, 63), "");
    LLVMValueRef m = LLVMBuildAnd(gen->b, LLVMBuildShl(gen->b, rest, safe, ""), u64(gen, self->one - 1), "");
    LLVMValueRef u =
        LLVMBuildOr(gen->b, m, LLVMBuildShl(gen->b, e, u64(gen, (uint64_t)self->fraction), ""), "");
    LLVMValueRef none = LLVMBuildOr(gen->b, LLVMBuildICmp(gen->b, LLVMIntEQ, rest, u64(gen, 0), ""),
                                    LLVMBuildICmp(gen->b, LLVMIntSLE, e, u64(gen, 0), ""), "");
    u = LLVMBuildOr(gen->b, LLVMBuildSelect(gen->b, none, u64(gen, 0), u, ""), sign, "");
    return LLVMBuildBitCast(gen->b, LLVMBuildTrunc(gen->b, u, self->bits, ""), self->real, "");
}

/* The body of the remainder function: NaN for a zero divisor or an operand that is no number, x itself where
 * it is the smaller, otherwise the long division of the significands. */
static void write(llvm_gen *gen, const layout *self, LLVMValueRef function)
{
    LLVMValueRef x = LLVMGetParam(function, 0), y = LLVMGetParam(function, 1), bx = wide_bits(gen, self, x);
    LLVMValueRef ux = LLVMBuildAnd(gen->b, bx, u64(gen, ~self->sign), ""),
                 uy = LLVMBuildAnd(gen->b, wide_bits(gen, self, y), u64(gen, ~self->sign), "");
    LLVMBasicBlockRef bad = llvm_block(gen, "nan"), good = llvm_block(gen, "numbers"),
                      less = llvm_block(gen, "less"), more = llvm_block(gen, "more");
    LLVMValueRef none = LLVMBuildICmp(gen->b, LLVMIntULT, uy, u64(gen, self->one), ""),
                 no_y = LLVMBuildICmp(gen->b, LLVMIntUGT, uy, u64(gen, self->infinity), "");
    LLVMValueRef no_x = LLVMBuildICmp(gen->b, LLVMIntUGE, ux, u64(gen, self->infinity), "");
    LLVMBuildCondBr(gen->b, LLVMBuildOr(gen->b, none, LLVMBuildOr(gen->b, no_x, no_y, ""), ""), bad, good);
    LLVMPositionBuilderAtEnd(gen->b, bad);
    LLVMBuildRet(gen->b, llvm_float_like(gen, self->real, (double)NAN));
    LLVMPositionBuilderAtEnd(gen->b, good);
    LLVMBuildCondBr(gen->b, LLVMBuildICmp(gen->b, LLVMIntULT, ux, uy, ""), less, more);
    LLVMPositionBuilderAtEnd(gen->b, less);
    LLVMBuildRet(gen->b, x);
    LLVMPositionBuilderAtEnd(gen->b, more);
    LLVMValueRef shift = u64(gen, (uint64_t)self->fraction), my = mantissa_of(gen, self, uy);
    LLVMValueRef ex = LLVMBuildLShr(gen->b, ux, shift, ""), ey = LLVMBuildLShr(gen->b, uy, shift, "");
    LLVMValueRef r = LLVMBuildURem(gen->b, mantissa_of(gen, self, ux), my, "");
    r = divide(gen, self, r, LLVMBuildSub(gen->b, ex, ey, ""), my);
    LLVMBuildRet(gen->b, compose(gen, self, r, ey, LLVMBuildAnd(gen->b, bx, u64(gen, self->sign), "")));
}

/* One function per module and type, made at its first use. */
static LLVMValueRef remainder_function(llvm_gen *gen, LLVMTypeRef real)
{
    bool wide = real == gen->f64;
    const char *name = wide ? "tec.fmod" : "tec.fmodf";
    LLVMValueRef f = LLVMGetNamedFunction(gen->m, name);
    if (f)
        return f;
    layout l = wide ? (layout){gen->f64,         gen->i64, 52, 11, UINT64_C(1) << 63, UINT64_C(0x7ff) << 52,
                               UINT64_C(1) << 52}
                    : (layout){gen->f32,         gen->i32, 23, 40, UINT64_C(1) << 31, UINT64_C(0xff) << 23,
                               UINT64_C(1) << 23};
    LLVMBasicBlockRef here = LLVMGetInsertBlock(gen->b);
    llvm_function own = {0}, *outer = gen->f;
    f = own.function =
        LLVMAddFunction(gen->m, name, LLVMFunctionType(real, (LLVMTypeRef[]){real, real}, 2, 0));
    LLVMSetLinkage(f, LLVMInternalLinkage);
    llvm_set_attributes(gen, f);
    gen->f = &own;
    LLVMPositionBuilderAtEnd(gen->b, llvm_block(gen, "entry"));
    write(gen, &l, f);
    gen->f = outer;
    LLVMPositionBuilderAtEnd(gen->b, here);
    return f;
}

/* The remainder of two floats, lane by lane for vectors. */
LLVMValueRef llvm_fmod(llvm_gen *gen, LLVMValueRef left, LLVMValueRef right)
{
    LLVMTypeRef type = LLVMTypeOf(left);
    int lanes = llvm_lanes(type);
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    LLVMValueRef f = remainder_function(gen, vector ? LLVMGetElementType(type) : type),
                 all = LLVMGetPoison(type);
    LLVMTypeRef function = LLVMGlobalGetValueType(f);
    if (!vector)
        return LLVMBuildCall2(gen->b, function, f, (LLVMValueRef[]){left, right}, 2, "");
    for (int k = 0; k < lanes; k++) {
        LLVMValueRef at = LLVMConstInt(gen->i32, (unsigned long long)k, 0);
        LLVMValueRef args[] = {LLVMBuildExtractElement(gen->b, left, at, ""),
                               LLVMBuildExtractElement(gen->b, right, at, "")};
        all = LLVMBuildInsertElement(gen->b, all, LLVMBuildCall2(gen->b, function, f, args, 2, ""), at, "");
    }
    return all;
}
