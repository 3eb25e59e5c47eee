/* targets/llvm/half.c -- float16 and bfloat16: to float32 and back, rounding to nearest even.
 *
 * They live in registers as their 16 bits. Where the CPU converts itself, LLVM's fpext and fptrunc are used;
 * elsewhere those would call functions that nobody links, so the conversions are written out with integers.
 * They must hold while denormals are flushed, which is why denormal halves go through integer conversion. The
 * bfloat16 conversion of AVX-512 flushes denormals whatever the mode is, so strict programs do without it.
 */
#include "targets/llvm/gen.h"

static LLVMTypeRef like(LLVMTypeRef scalar, LLVMValueRef v)
{
    return llvm_with_lanes(scalar, llvm_lanes(LLVMTypeOf(v)));
}

static LLVMValueRef constant(llvm_gen *g, LLVMValueRef like_this, int64_t value)
{
    return llvm_int_like(g, LLVMTypeOf(like_this), value);
}

static LLVMValueRef is_at_least(llvm_gen *g, LLVMValueRef v, int64_t value)
{
    return LLVMBuildICmp(g->b, LLVMIntUGE, v, constant(g, v, value), "");
}

/* ---- bfloat16 ---- */

static LLVMValueRef widen_bfloat(llvm_gen *g, LLVMValueRef v)
{
    LLVMValueRef w = LLVMBuildZExt(g->b, v, like(g->i32, v), "");
    return LLVMBuildBitCast(g->b, LLVMBuildShl(g->b, w, constant(g, w, 16), ""), like(g->f32, v), "");
}

static bool converts_bfloats(llvm_gen *g, LLVMValueRef v)
{
    int lanes = llvm_lanes(LLVMTypeOf(v));
    return g->t->has_avx512bf16 && !g->keep_denormals && (lanes == 8 || lanes == 16 || lanes == 32);
}

/* Adding 0x7fff and the last bit that stays rounds to nearest even; a NaN must keep a bit of its significand.
 */
static LLVMValueRef narrow_bfloat(llvm_gen *g, LLVMValueRef v)
{
    if (converts_bfloats(g, v)) {
        LLVMValueRef h = LLVMBuildFPTrunc(g->b, v, like(LLVMBFloatTypeInContext(g->c), v), "");
        return LLVMBuildBitCast(g->b, h, like(g->i16, v), "");
    }
    LLVMValueRef w = LLVMBuildBitCast(g->b, v, like(g->i32, v), "");
    LLVMValueRef odd =
        LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, w, constant(g, w, 16), ""), constant(g, w, 1), "");
    LLVMValueRef rounded = LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, w, constant(g, w, 0x7fff), ""), odd, "");
    LLVMValueRef quiet = LLVMBuildOr(g->b, w, constant(g, w, 0x400000), "");
    LLVMValueRef is_nan = LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, "");
    LLVMValueRef chosen = LLVMBuildSelect(g->b, is_nan, quiet, rounded, "");
    return LLVMBuildTrunc(g->b, LLVMBuildLShr(g->b, chosen, constant(g, w, 16), ""), like(g->i16, v), "");
}

/* ---- float16 ---- */

/* Normal numbers move by 13 bits and change their exponent's bias; infinities and NaNs get the exponent of
 * their kind; denormals are converted as integers times 2^-24. */
static LLVMValueRef widen_half(llvm_gen *g, LLVMValueRef v)
{
    LLVMTypeRef f32 = like(g->f32, v);
    if (g->t->has_f16c)
        return LLVMBuildFPExt(g->b, LLVMBuildBitCast(g->b, v, like(LLVMHalfTypeInContext(g->c), v), ""), f32,
                              "");
    LLVMValueRef w = LLVMBuildZExt(g->b, v, like(g->i32, v), "");
    LLVMValueRef magnitude = LLVMBuildAnd(g->b, w, constant(g, w, 0x7fff), "");
    LLVMValueRef sign =
        LLVMBuildShl(g->b, LLVMBuildAnd(g->b, w, constant(g, w, 0x8000), ""), constant(g, w, 16), "");
    LLVMValueRef moved = LLVMBuildShl(g->b, magnitude, constant(g, w, 13), "");
    LLVMValueRef normal = LLVMBuildAdd(g->b, moved, constant(g, w, 0x38000000), "");
    LLVMValueRef special = LLVMBuildOr(g->b, moved, constant(g, w, 0x7f800000), "");
    LLVMValueRef small =
        LLVMBuildFMul(g->b, LLVMBuildSIToFP(g->b, magnitude, f32, ""), llvm_float_like(g, f32, 0x1p-24), "");
    LLVMValueRef bits = LLVMBuildSelect(g->b, is_at_least(g, magnitude, 0x7c00), special, normal, "");
    LLVMValueRef small_bits = LLVMBuildBitCast(g->b, small, LLVMTypeOf(w), "");
    bits = LLVMBuildSelect(g->b, is_at_least(g, magnitude, 0x400), bits, small_bits, "");
    return LLVMBuildBitCast(g->b, LLVMBuildOr(g->b, bits, sign, ""), f32, "");
}

/* Adding 0.5 to a number below 2^-14 rounds it to a multiple of 2^-24, the smallest half, and leaves the
 * count in the low bits. */
static LLVMValueRef narrow_small_half(llvm_gen *g, LLVMValueRef magnitude)
{
    LLVMTypeRef f32 = like(g->f32, magnitude);
    LLVMValueRef f = LLVMBuildBitCast(g->b, magnitude, f32, "");
    LLVMValueRef moved = LLVMBuildFAdd(g->b, f, llvm_float_like(g, f32, 0.5), "");
    return LLVMBuildSub(g->b, LLVMBuildBitCast(g->b, moved, LLVMTypeOf(magnitude), ""),
                        constant(g, magnitude, 0x3f000000), "");
}

/* The reverse of widen_half with rounding: 0x47800000 is 65536, from which on everything is infinite,
 * 0x38800000 is 2^-14, the least normal half. */
static LLVMValueRef narrow_half(llvm_gen *g, LLVMValueRef v)
{
    LLVMTypeRef i16 = like(g->i16, v);
    if (g->t->has_f16c)
        return LLVMBuildBitCast(g->b, LLVMBuildFPTrunc(g->b, v, like(LLVMHalfTypeInContext(g->c), v), ""),
                                i16, "");
    LLVMValueRef w = LLVMBuildBitCast(g->b, v, like(g->i32, v), "");
    LLVMValueRef magnitude = LLVMBuildAnd(g->b, w, constant(g, w, 0x7fffffff), "");
    LLVMValueRef sign =
        LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, w, constant(g, w, 16), ""), constant(g, w, 0x8000), "");
    LLVMValueRef odd =
        LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, magnitude, constant(g, w, 13), ""), constant(g, w, 1), "");
    LLVMValueRef rounded =
        LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, magnitude, constant(g, w, 0xfff - 0x38000000LL), ""), odd, "");
    LLVMValueRef normal = LLVMBuildLShr(g->b, rounded, constant(g, w, 13), "");
    LLVMValueRef is_nan = is_at_least(g, magnitude, 0x7f800001);
    LLVMValueRef special = LLVMBuildSelect(g->b, is_nan, constant(g, w, 0x7e00), constant(g, w, 0x7c00), "");
    LLVMValueRef h = LLVMBuildSelect(g->b, is_at_least(g, magnitude, 0x47800000), special, normal, "");
    h = LLVMBuildSelect(g->b, is_at_least(g, magnitude, 0x38800000), h, narrow_small_half(g, magnitude), "");
    return LLVMBuildTrunc(g->b, LLVMBuildOr(g->b, h, sign, ""), i16, "");
}

LLVMValueRef llvm_widen(llvm_gen *g, base_dtype t, LLVMValueRef v)
{
    if (t.bits != 16)
        return v;
    return t.code == kDLBfloat ? widen_bfloat(g, v) : widen_half(g, v);
}

LLVMValueRef llvm_narrow(llvm_gen *g, base_dtype t, LLVMValueRef v)
{
    if (t.bits != 16)
        return v;
    return t.code == kDLBfloat ? narrow_bfloat(g, v) : narrow_half(g, v);
}
