/* targets/llvm/half.c -- float16 and bfloat16: to float32 and back, rounding to nearest even.
 *
 * They live in registers as their 16 bits. Where the CPU converts itself, LLVM's fpext and fptrunc are used;
 * elsewhere those would call functions that nobody links, so the conversions are written out with integers.
 * They must hold while denormals are flushed, which is why denormal halves go through integer conversion. The
 * bfloat16 conversion of AVX-512 flushes denormals whatever the mode is, so strict programs do without it.
 *
 * Where the CPU does not convert, a float16 that one operation gives and the next one takes is rounded as a
 * float32, without becoming 16 bits in between:
 *
 *     (a + b) * c:   s = widen(a) + widen(b);   narrow(round_as_half(s) * widen(c))
 *                                               not narrow(widen(narrow(s)) * widen(c))
 *
 * narrow notes what it was given (gen->halves), and widen looks there. LLVM drops bits that are not used.
 */
#include <math.h>

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

static LLVMValueRef as_float(llvm_gen *gen, LLVMValueRef bits)
{
    return LLVMBuildBitCast(gen->b, bits, like(gen->f32, bits), "");
}

static LLVMValueRef magnitude_of(llvm_gen *gen, LLVMValueRef bits)
{
    return LLVMBuildAnd(gen->b, bits, constant(gen, bits, 0x7fffffff), "");
}

/* 2^13 times the power of two at or below a number, at least 2^-1: the float32 numbers from there on are as
 * far apart as the halves around the number, so adding it rounds as a half does, to nearest even.
 *
 *     0x1.0018p0 (a middle between two halves is 0x1.002p0):  anchor 0x1p13,  sum 0x1.0008p13
 *     0x1.8p-24 (the least half is 0x1p-24):                  anchor 0x1p-1,  sum 0x1.000004p-1, two of them
 *
 * Of no use for numbers that are too large for a half. */
static LLVMValueRef anchor_of(llvm_gen *gen, LLVMValueRef magnitude)
{
    LLVMValueRef power =
        as_float(gen, LLVMBuildAnd(gen->b, magnitude, constant(gen, magnitude, 0x7f800000), ""));
    LLVMValueRef least = llvm_float_like(gen, LLVMTypeOf(power), 0x1p-14);
    LLVMValueRef larger = LLVMBuildFCmp(gen->b, LLVMRealOGT, power, least, "");
    LLVMValueRef bits = LLVMBuildBitCast(gen->b, LLVMBuildSelect(gen->b, larger, power, least, ""),
                                         LLVMTypeOf(magnitude), "");

    return as_float(gen, LLVMBuildAdd(gen->b, bits, constant(gen, bits, 13 << 23), ""));
}

/* What widen_half(narrow_half(value)) is. From 65520 on a number rounds to 65536, which a half does not hold:
 * adding an infinity makes one of it, and leaves a NaN one. */
static LLVMValueRef round_as_half(llvm_gen *gen, LLVMValueRef value)
{
    LLVMTypeRef f32 = like(gen->f32, value);
    LLVMValueRef w = LLVMBuildBitCast(gen->b, value, like(gen->i32, value), "");
    LLVMValueRef magnitude = magnitude_of(gen, w), f = as_float(gen, magnitude);
    LLVMValueRef anchor = anchor_of(gen, magnitude);
    LLVMValueRef sign = LLVMBuildAnd(gen->b, w, constant(gen, w, 0x80000000), "");
    LLVMValueRef rounded = LLVMBuildFSub(gen->b, LLVMBuildFAdd(gen->b, f, anchor, ""), anchor, "");
    LLVMValueRef infinite = LLVMBuildFAdd(gen->b, f, llvm_float_like(gen, f32, INFINITY), "");
    LLVMValueRef chosen =
        LLVMBuildSelect(gen->b, is_at_least(gen, magnitude, 0x477ff000), infinite, rounded, "");
    LLVMValueRef bits = LLVMBuildBitCast(gen->b, chosen, LLVMTypeOf(w), "");

    return as_float(gen, LLVMBuildOr(gen->b, bits, sign, ""));
}

/* The reverse of widen_half with rounding. In the sum of a number and its anchor, the low 12 bits count the
 * distances between halves that the number consists of: 1024 to 2048, or less for a denormal half. The biased
 * exponent of the sum is 126 more than what is added to the count's own 1024. 0x47800000 is 65536, from which
 * on everything is infinite.
 *
 *     1.5:  anchor 2^13, sum 0x46000600 of exponent 140, count 0x600;  (140 - 126) << 10 plus 0x600 is 0x3e00
 */
static LLVMValueRef narrow_half(llvm_gen *gen, LLVMValueRef value)
{
    LLVMTypeRef i16 = like(gen->i16, value);
    if (gen->t->has_f16c)
        return LLVMBuildBitCast(
            gen->b, LLVMBuildFPTrunc(gen->b, value, like(LLVMHalfTypeInContext(gen->c), value), ""), i16, "");
    LLVMValueRef w = LLVMBuildBitCast(gen->b, value, like(gen->i32, value), "");
    LLVMValueRef magnitude = magnitude_of(gen, w);
    LLVMValueRef sign = LLVMBuildAnd(gen->b, LLVMBuildLShr(gen->b, w, constant(gen, w, 16), ""),
                                     constant(gen, w, 0x8000), "");
    LLVMValueRef sum = LLVMBuildFAdd(gen->b, as_float(gen, magnitude), anchor_of(gen, magnitude), "");
    LLVMValueRef bits = LLVMBuildBitCast(gen->b, sum, LLVMTypeOf(w), "");
    LLVMValueRef count = LLVMBuildAnd(gen->b, bits, constant(gen, w, 0xfff), "");
    LLVMValueRef exponent = LLVMBuildSub(gen->b, LLVMBuildLShr(gen->b, bits, constant(gen, w, 13), ""),
                                         constant(gen, w, 126 << 10), "");
    LLVMValueRef is_nan = is_at_least(gen, magnitude, 0x7f800001);
    LLVMValueRef special =
        LLVMBuildSelect(gen->b, is_nan, constant(gen, w, 0x7e00), constant(gen, w, 0x7c00), "");
    LLVMValueRef h = LLVMBuildSelect(gen->b, is_at_least(gen, magnitude, 0x47800000), special,
                                     LLVMBuildAdd(gen->b, exponent, count, ""), "");
    LLVMValueRef half = LLVMBuildTrunc(gen->b, LLVMBuildOr(gen->b, h, sign, ""), i16, "");
    if (LLVMIsAInstruction(half)) /* constants are shared by all that are equal */
        base_map_put(gen->cx, &gen->halves, half, value);
    return half;
}

/* 0x80000000 where the bits are 0x8000 or more, by the sign of a difference. Shifted by 16, x86 without AVX
 * would load the bits beside what the register had before, and wait for the instruction that writes that: a
 * loop of exp took twice as long. */
static LLVMValueRef sign_of_half(llvm_gen *gen, LLVMValueRef bits)
{
    LLVMTypeRef f32 = like(gen->f32, bits);
    LLVMValueRef number = LLVMBuildUIToFP(gen->b, bits, f32, "");
    LLVMValueRef below = LLVMBuildFSub(gen->b, llvm_float_like(gen, f32, 0x7fff.8p0), number, "");

    return LLVMBuildAnd(gen->b, LLVMBuildBitCast(gen->b, below, LLVMTypeOf(bits), ""),
                        constant(gen, bits, 0x80000000), "");
}

/* Normal numbers move by 13 bits and change their exponent's bias; infinities and NaNs get the exponent of
 * their kind; denormals are converted as integers times 2^-24. */
static LLVMValueRef widen_half(llvm_gen *gen, LLVMValueRef value)
{
    LLVMTypeRef f32 = like(gen->f32, value);
    if (gen->t->has_f16c) {
        LLVMValueRef half = LLVMBuildBitCast(gen->b, value, like(LLVMHalfTypeInContext(gen->c), value), "");
        LLVMValueRef wide = LLVMBuildFPExt(gen->b, half, f32, "");
        /* Seeing where a float comes from, LLVM computes and compares halves instead: lane by lane, unless
         * the CPU has such instructions for vectors. The result is the same: a float has 24 bits, at least
         * twice the 11 of a half and two more, so that rounding to a float first changes no rounding to a
         * half. */
        return gen->t->has_avx512fp16 ? wide : llvm_intrinsic1(gen, "llvm.arithmetic.fence", f32, wide);
    }
    LLVMValueRef from = base_map_get(&gen->halves, value);
    if (from)
        return round_as_half(gen, from);
    LLVMValueRef w = LLVMBuildZExt(gen->b, value, like(gen->i32, value), "");
    LLVMValueRef magnitude = LLVMBuildAnd(gen->b, w, constant(gen, w, 0x7fff), "");
    LLVMValueRef sign = sign_of_half(gen, w);
    LLVMValueRef moved = LLVMBuildShl(gen->b, magnitude, constant(gen, w, 13), "");
    LLVMValueRef normal = LLVMBuildAdd(gen->b, moved, constant(gen, w, 0x38000000), "");
    LLVMValueRef special = LLVMBuildSelect(gen->b, is_at_least(gen, magnitude, 0x7c00),
                                           constant(gen, w, 0x7f800000), constant(gen, w, 0), "");
    LLVMValueRef small = LLVMBuildFMul(gen->b, LLVMBuildSIToFP(gen->b, magnitude, f32, ""),
                                       llvm_float_like(gen, f32, 0x1p-24), "");
    LLVMValueRef bits = LLVMBuildOr(gen->b, normal, special, "");
    LLVMValueRef small_bits = LLVMBuildBitCast(gen->b, small, LLVMTypeOf(w), "");
    bits = LLVMBuildSelect(gen->b, is_at_least(gen, magnitude, 0x400), bits, small_bits, "");
    return LLVMBuildBitCast(gen->b, LLVMBuildOr(gen->b, bits, sign, ""), f32, "");
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
