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

static LLVMValueRef u64(llvm_gen *g, uint64_t v)
{
    return LLVMConstInt(g->i64, v, 0);
}

static LLVMValueRef wide_bits(llvm_gen *g, const layout *l, LLVMValueRef v)
{
    return LLVMBuildZExt(g->b, LLVMBuildBitCast(g->b, v, l->bits, ""), g->i64, "");
}

static LLVMValueRef mantissa_of(llvm_gen *g, const layout *l, LLVMValueRef u)
{
    return LLVMBuildOr(g->b, LLVMBuildAnd(g->b, u, u64(g, l->one - 1), ""), u64(g, l->one), "");
}

/* The remainder of r * 2^left by my, where r < my. */
static LLVMValueRef divide(llvm_gen *g, const layout *l, LLVMValueRef r0, LLVMValueRef left0, LLVMValueRef my)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), loop = llvm_block(g, "divide"),
                      after = llvm_block(g, "divided");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSGT, left0, u64(g, 0), ""), loop, after);
    LLVMPositionBuilderAtEnd(g->b, loop);
    LLVMValueRef r = LLVMBuildPhi(g->b, g->i64, ""), left = LLVMBuildPhi(g->b, g->i64, "");
    LLVMValueRef step = llvm_intrinsic2(g, "llvm.umin", g->i64, left, u64(g, (uint64_t)l->step));
    LLVMValueRef next = LLVMBuildURem(g->b, LLVMBuildShl(g->b, r, step, ""), my, ""),
                 rest = LLVMBuildSub(g->b, left, step, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, rest, u64(g, 0), ""), loop, after);
    LLVMAddIncoming(r, (LLVMValueRef[]){r0, next}, (LLVMBasicBlockRef[]){before, loop}, 2);
    LLVMAddIncoming(left, (LLVMValueRef[]){left0, rest}, (LLVMBasicBlockRef[]){before, loop}, 2);
    LLVMPositionBuilderAtEnd(g->b, after);
    LLVMValueRef result = LLVMBuildPhi(g->b, g->i64, "");
    LLVMAddIncoming(result, (LLVMValueRef[]){r0, next}, (LLVMBasicBlockRef[]){before, loop}, 2);
    return result;
}

/* r * 2^(ey - bias - fraction) as a float with the sign of x; what is below the normal range is 0. */
static LLVMValueRef compose(llvm_gen *g, const layout *l, LLVMValueRef r, LLVMValueRef ey, LLVMValueRef sign)
{
    LLVMValueRef args[] = {r, LLVMConstInt(g->i1, 0, 0)};
    LLVMValueRef zeros = llvm_intrinsic(g, "llvm.ctlz", &g->i64, 1, args, 2);
    LLVMValueRef shift = LLVMBuildSub(g->b, zeros, u64(g, (uint64_t)(63 - l->fraction)), "");
    LLVMValueRef e = LLVMBuildSub(g->b, ey, shift, "");
    LLVMValueRef safe = LLVMBuildAnd(g->b, shift, u64(g, 63), "");
    LLVMValueRef m = LLVMBuildAnd(g->b, LLVMBuildShl(g->b, r, safe, ""), u64(g, l->one - 1), "");
    LLVMValueRef u = LLVMBuildOr(g->b, m, LLVMBuildShl(g->b, e, u64(g, (uint64_t)l->fraction), ""), "");
    LLVMValueRef none = LLVMBuildOr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, r, u64(g, 0), ""),
                                    LLVMBuildICmp(g->b, LLVMIntSLE, e, u64(g, 0), ""), "");
    u = LLVMBuildOr(g->b, LLVMBuildSelect(g->b, none, u64(g, 0), u, ""), sign, "");
    return LLVMBuildBitCast(g->b, LLVMBuildTrunc(g->b, u, l->bits, ""), l->real, "");
}

/* The body of the remainder function: NaN for a zero divisor or an operand that is no number, x itself where
 * it is the smaller, otherwise the long division of the significands. */
static void write(llvm_gen *g, const layout *l, LLVMValueRef f)
{
    LLVMValueRef x = LLVMGetParam(f, 0), y = LLVMGetParam(f, 1), bx = wide_bits(g, l, x);
    LLVMValueRef ux = LLVMBuildAnd(g->b, bx, u64(g, ~l->sign), ""),
                 uy = LLVMBuildAnd(g->b, wide_bits(g, l, y), u64(g, ~l->sign), "");
    LLVMBasicBlockRef bad = llvm_block(g, "nan"), good = llvm_block(g, "numbers"),
                      less = llvm_block(g, "less"), more = llvm_block(g, "more");
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntULT, uy, u64(g, l->one), ""),
                 no_y = LLVMBuildICmp(g->b, LLVMIntUGT, uy, u64(g, l->infinity), "");
    LLVMValueRef no_x = LLVMBuildICmp(g->b, LLVMIntUGE, ux, u64(g, l->infinity), "");
    LLVMBuildCondBr(g->b, LLVMBuildOr(g->b, none, LLVMBuildOr(g->b, no_x, no_y, ""), ""), bad, good);
    LLVMPositionBuilderAtEnd(g->b, bad);
    LLVMBuildRet(g->b, llvm_float_like(g, l->real, (double)NAN));
    LLVMPositionBuilderAtEnd(g->b, good);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, ux, uy, ""), less, more);
    LLVMPositionBuilderAtEnd(g->b, less);
    LLVMBuildRet(g->b, x);
    LLVMPositionBuilderAtEnd(g->b, more);
    LLVMValueRef shift = u64(g, (uint64_t)l->fraction), my = mantissa_of(g, l, uy);
    LLVMValueRef ex = LLVMBuildLShr(g->b, ux, shift, ""), ey = LLVMBuildLShr(g->b, uy, shift, "");
    LLVMValueRef r = LLVMBuildURem(g->b, mantissa_of(g, l, ux), my, "");
    r = divide(g, l, r, LLVMBuildSub(g->b, ex, ey, ""), my);
    LLVMBuildRet(g->b, compose(g, l, r, ey, LLVMBuildAnd(g->b, bx, u64(g, l->sign), "")));
}

/* One function per module and type, made at its first use. */
static LLVMValueRef remainder_function(llvm_gen *g, LLVMTypeRef real)
{
    bool wide = real == g->f64;
    const char *name = wide ? "tec.fmod" : "tec.fmodf";
    LLVMValueRef f = LLVMGetNamedFunction(g->m, name);
    if (f)
        return f;
    layout l =
        wide ? (layout){g->f64, g->i64, 52, 11, UINT64_C(1) << 63, UINT64_C(0x7ff) << 52, UINT64_C(1) << 52}
             : (layout){g->f32, g->i32, 23, 40, UINT64_C(1) << 31, UINT64_C(0xff) << 23, UINT64_C(1) << 23};
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    llvm_function own = {0}, *outer = g->f;
    f = own.function = LLVMAddFunction(g->m, name, LLVMFunctionType(real, (LLVMTypeRef[]){real, real}, 2, 0));
    LLVMSetLinkage(f, LLVMInternalLinkage);
    llvm_set_attributes(g, f);
    g->f = &own;
    LLVMPositionBuilderAtEnd(g->b, llvm_block(g, "entry"));
    write(g, &l, f);
    g->f = outer;
    LLVMPositionBuilderAtEnd(g->b, here);
    return f;
}

/* The remainder of two floats, lane by lane for vectors. */
LLVMValueRef llvm_fmod(llvm_gen *g, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    int lanes = llvm_lanes(type);
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    LLVMValueRef f = remainder_function(g, vector ? LLVMGetElementType(type) : type),
                 all = LLVMGetPoison(type);
    LLVMTypeRef function = LLVMGlobalGetValueType(f);
    if (!vector)
        return LLVMBuildCall2(g->b, function, f, (LLVMValueRef[]){a, b}, 2, "");
    for (int k = 0; k < lanes; k++) {
        LLVMValueRef at = LLVMConstInt(g->i32, (unsigned long long)k, 0);
        LLVMValueRef args[] = {LLVMBuildExtractElement(g->b, a, at, ""),
                               LLVMBuildExtractElement(g->b, b, at, "")};
        all = LLVMBuildInsertElement(g->b, all, LLVMBuildCall2(g->b, function, f, args, 2, ""), at, "");
    }
    return all;
}
