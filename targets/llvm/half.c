/* targets/llvm/half.c -- float16 and bfloat16: to float32 and back, rounding to nearest even.
 *
 * They live in registers as their 16 bits. Where the CPU converts itself, LLVM's fpext and fptrunc are used;
 * elsewhere those would call functions that nobody links, so the conversions are written out with integers.
 * They must hold while denormals are flushed, which is why denormal halves go through integer conversion. The
 * bfloat16 conversion of AVX-512 flushes denormals whatever the mode is, so strict programs do without it.
 */
#include "targets/llvm/gen.h"

static LLVMTypeRef like(LLVMTypeRef scalar, LLVMValueRef value)
{
    return llvm_with_lanes(scalar, llvm_lanes(LLVMTypeOf(value)));
}

static LLVMValueRef constant(llvm_gen *gen, LLVMValueRef like_this, int64_t value)
{
    return llvm_int_like(gen, LLVMTypeOf(like_this), value);
}

static LLVMValueRef is_at_least(llvm_gen *gen, LLVMValueRef v, int64_t value)
{
    return LLVMBuildICmp(gen->b, LLVMIntUGE, v, constant(gen, v, value), "");
}

/* ---- bfloat16 ---- */

static LLVMValueRef widen_bfloat(llvm_gen *gen, LLVMValueRef value)
{
    LLVMValueRef w = LLVMBuildZExt(gen->b, value, like(gen->i32, value), "");
    return LLVMBuildBitCast(gen->b, LLVMBuildShl(gen->b, w, constant(gen, w, 16), ""), like(gen->f32, value),
                            "");
}

static bool converts_bfloats(llvm_gen *gen, LLVMValueRef value)
{
    int lanes = llvm_lanes(LLVMTypeOf(value));
    return gen->t->has_avx512bf16 && !gen->keep_denormals && (lanes == 8 || lanes == 16 || lanes == 32);
}

/* Adding 0x7fff and the last bit that stays rounds to nearest even; a NaN must keep a bit of its significand.
 */
static LLVMValueRef narrow_bfloat(llvm_gen *gen, LLVMValueRef value)
{
    if (converts_bfloats(gen, value)) {
        LLVMValueRef h = LLVMBuildFPTrunc(gen->b, value, like(LLVMBFloatTypeInContext(gen->c), value), "");
        return LLVMBuildBitCast(gen->b, h, like(gen->i16, value), "");
    }
    LLVMValueRef w = LLVMBuildBitCast(gen->b, value, like(gen->i32, value), "");
    LLVMValueRef odd =
        LLVMBuildAnd(gen->b, LLVMBuildLShr(gen->b, w, constant(gen, w, 16), ""), constant(gen, w, 1), "");
    LLVMValueRef rounded =
        LLVMBuildAdd(gen->b, LLVMBuildAdd(gen->b, w, constant(gen, w, 0x7fff), ""), odd, "");
    LLVMValueRef quiet = LLVMBuildOr(gen->b, w, constant(gen, w, 0x400000), "");
    LLVMValueRef is_nan = LLVMBuildFCmp(gen->b, LLVMRealUNO, value, value, "");
    LLVMValueRef chosen = LLVMBuildSelect(gen->b, is_nan, quiet, rounded, "");
    return LLVMBuildTrunc(gen->b, LLVMBuildLShr(gen->b, chosen, constant(gen, w, 16), ""),
                          like(gen->i16, value), "");
}

/* ---- float16 ---- */

/* Normal numbers move by 13 bits and change their exponent's bias; infinities and NaNs get the exponent of
 * their kind; denormals are converted as integers times 2^-24. */
static LLVMValueRef widen_half(llvm_gen *gen, LLVMValueRef value)
{
    LLVMTypeRef f32 = like(gen->f32, value);
    if (gen->t->has_f16c) {
        LLVMValueRef half = LLVMBuildBitCast(gen->b, value, like(LLVMHalfTypeInContext(gen->c), value), "");
        /* Seeing where a float comes from, LLVM computes and compares halves instead: lane by lane, as the
         * CPU has no such instructions for vectors. */
        return llvm_intrinsic1(gen, "llvm.arithmetic.fence", f32, LLVMBuildFPExt(gen->b, half, f32, ""));
    }
    LLVMValueRef w = LLVMBuildZExt(gen->b, value, like(gen->i32, value), "");
    LLVMValueRef magnitude = LLVMBuildAnd(gen->b, w, constant(gen, w, 0x7fff), "");
    LLVMValueRef sign =
        LLVMBuildShl(gen->b, LLVMBuildAnd(gen->b, w, constant(gen, w, 0x8000), ""), constant(gen, w, 16), "");
    LLVMValueRef moved = LLVMBuildShl(gen->b, magnitude, constant(gen, w, 13), "");
    LLVMValueRef normal = LLVMBuildAdd(gen->b, moved, constant(gen, w, 0x38000000), "");
    LLVMValueRef special = LLVMBuildOr(gen->b, moved, constant(gen, w, 0x7f800000), "");
    LLVMValueRef small = LLVMBuildFMul(gen->b, LLVMBuildSIToFP(gen->b, magnitude, f32, ""),
                                       llvm_float_like(gen, f32, 0x1p-24), "");
    LLVMValueRef bits = LLVMBuildSelect(gen->b, is_at_least(gen, magnitude, 0x7c00), special, normal, "");
    LLVMValueRef small_bits = LLVMBuildBitCast(gen->b, small, LLVMTypeOf(w), "");
    bits = LLVMBuildSelect(gen->b, is_at_least(gen, magnitude, 0x400), bits, small_bits, "");
    return LLVMBuildBitCast(gen->b, LLVMBuildOr(gen->b, bits, sign, ""), f32, "");
}

/* Adding 0.5 to a number below 2^-14 rounds it to a multiple of 2^-24, the smallest half, and leaves the
 * count in the low bits. */
static LLVMValueRef narrow_small_half(llvm_gen *gen, LLVMValueRef magnitude)
{
    LLVMTypeRef f32 = like(gen->f32, magnitude);
    LLVMValueRef f = LLVMBuildBitCast(gen->b, magnitude, f32, "");
    LLVMValueRef moved = LLVMBuildFAdd(gen->b, f, llvm_float_like(gen, f32, 0.5), "");
    return LLVMBuildSub(gen->b, LLVMBuildBitCast(gen->b, moved, LLVMTypeOf(magnitude), ""),
                        constant(gen, magnitude, 0x3f000000), "");
}

/* The reverse of widen_half with rounding: 0x47800000 is 65536, from which on everything is infinite,
 * 0x38800000 is 2^-14, the least normal half. */
static LLVMValueRef narrow_half(llvm_gen *gen, LLVMValueRef value)
{
    LLVMTypeRef i16 = like(gen->i16, value);
    if (gen->t->has_f16c)
        return LLVMBuildBitCast(
            gen->b, LLVMBuildFPTrunc(gen->b, value, like(LLVMHalfTypeInContext(gen->c), value), ""), i16, "");
    LLVMValueRef w = LLVMBuildBitCast(gen->b, value, like(gen->i32, value), "");
    LLVMValueRef magnitude = LLVMBuildAnd(gen->b, w, constant(gen, w, 0x7fffffff), "");
    LLVMValueRef sign = LLVMBuildAnd(gen->b, LLVMBuildLShr(gen->b, w, constant(gen, w, 16), ""),
                                     constant(gen, w, 0x8000), "");
    LLVMValueRef odd = LLVMBuildAnd(gen->b, LLVMBuildLShr(gen->b, magnitude, constant(gen, w, 13), ""),
                                    constant(gen, w, 1), "");
    LLVMValueRef rounded = LLVMBuildAdd(
        gen->b, LLVMBuildAdd(gen->b, magnitude, constant(gen, w, 0xfff - 0x38000000LL), ""), odd, "");
    LLVMValueRef normal = LLVMBuildLShr(gen->b, rounded, constant(gen, w, 13), "");
    LLVMValueRef is_nan = is_at_least(gen, magnitude, 0x7f800001);
    LLVMValueRef special =
        LLVMBuildSelect(gen->b, is_nan, constant(gen, w, 0x7e00), constant(gen, w, 0x7c00), "");
    LLVMValueRef h = LLVMBuildSelect(gen->b, is_at_least(gen, magnitude, 0x47800000), special, normal, "");
    h = LLVMBuildSelect(gen->b, is_at_least(gen, magnitude, 0x38800000), h, narrow_small_half(gen, magnitude),
                        "");
    return LLVMBuildTrunc(gen->b, LLVMBuildOr(gen->b, h, sign, ""), i16, "");
}

LLVMValueRef llvm_widen(llvm_gen *gen, base_dtype dtype, LLVMValueRef value)
{
    if (dtype.bits != 16)
        return value;
    return dtype.code == kDLBfloat ? widen_bfloat(gen, value) : widen_half(gen, value);
}

LLVMValueRef llvm_narrow(llvm_gen *gen, base_dtype dtype, LLVMValueRef value)
{
    if (dtype.bits != 16)
        return value;
    return dtype.code == kDLBfloat ? narrow_bfloat(gen, value) : narrow_half(gen, value);
}
