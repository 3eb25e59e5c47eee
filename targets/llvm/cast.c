/* targets/llvm/cast.c -- conversions between dtypes.
 *
 * float -> int truncates, saturates and takes NaN to 0. The value is first brought into the range that
 * converts (NaN to 0), so that LLVM's conversion, which is undefined outside, is never outside; where the
 * largest int is no float, values beyond the largest float below it are replaced afterwards. To a 16-bit
 * float from a wider one rounds twice unless the first step keeps what the second needs: it rounds to odd.
 */
#include <math.h>

#include "targets/llvm/gen.h"

static LLVMTypeRef like(LLVMTypeRef scalar, LLVMValueRef value)
{
    return llvm_with_lanes(scalar, llvm_lanes(LLVMTypeOf(value)));
}

/* ---- float -> int ---- */

static LLVMValueRef clamp(llvm_gen *gen, LLVMValueRef value, double low, double high)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef lo = llvm_float_like(gen, type, low), hi = llvm_float_like(gen, type, high);
    value = LLVMBuildSelect(gen->b, LLVMBuildFCmp(gen->b, LLVMRealOEQ, value, value, ""), value,
                            llvm_float_like(gen, type, 0), "");
    value = LLVMBuildSelect(gen->b, LLVMBuildFCmp(gen->b, LLVMRealOGT, value, lo, ""), value, lo, "");
    return LLVMBuildSelect(gen->b, LLVMBuildFCmp(gen->b, LLVMRealOLT, value, hi, ""), value, hi, "");
}

/* For integers narrower than 32 bits the conversion goes through 32 bits: the clamp has made the value fit.
 * `limit` is 2^bits, which is a float, while 2^bits - 1 may be none. */
static LLVMValueRef float_to_int(llvm_gen *gen, base_dtype from, base_dtype to, LLVMValueRef value)
{
    bool is_signed = base_is_signed(to), is_double = from.bits == 64;
    int bits = to.bits - is_signed, precision = is_double ? 53 : 24;
    double limit = ldexp(1, bits); /* the first value that is too large */
    double high = bits <= precision ? limit - 1 : limit - ldexp(1, bits - precision);
    int wide = to.bits > 32 || (to.bits == 32 && !is_signed) ? 64 : 32;
    bool direct_unsigned = !is_signed && to.bits > 32;
    LLVMValueRef in = clamp(gen, value, is_signed ? -limit : 0, high);
    LLVMTypeRef type = like(wide == 64 ? gen->i64 : gen->i32, value);
    LLVMValueRef out =
        direct_unsigned ? LLVMBuildFPToUI(gen->b, in, type, "") : LLVMBuildFPToSI(gen->b, in, type, "");
    if (to.bits < wide)
        out = LLVMBuildTrunc(gen->b, out, llvm_type(gen, to), "");
    if (bits <= precision)
        return out;
    LLVMValueRef beyond =
        LLVMBuildFCmp(gen->b, LLVMRealOGE, value, llvm_float_like(gen, LLVMTypeOf(value), limit), "");
    int64_t most = is_signed ? (int64_t)((UINT64_C(1) << bits) - 1) : -1;
    return LLVMBuildSelect(gen->b, beyond, llvm_int_like(gen, LLVMTypeOf(out), most), out, "");
}

/* ---- float -> float ---- */

/* double -> float, where inexact toward the neighbour with an odd last bit; a later rounding to fewer bits is
 * then as if direct. */
static LLVMValueRef round_to_odd(llvm_gen *gen, LLVMValueRef value)
{
    LLVMTypeRef f32 = like(gen->f32, value), i32 = like(gen->i32, value), f64 = LLVMTypeOf(value);
    LLVMValueRef near = LLVMBuildFPTrunc(gen->b, value, f32, ""),
                 back = LLVMBuildFPExt(gen->b, near, f64, "");
    LLVMValueRef size = llvm_intrinsic1(gen, "llvm.fabs", f64, value),
                 near_size = llvm_intrinsic1(gen, "llvm.fabs", f64, back);
    LLVMValueRef above = LLVMBuildFCmp(gen->b, LLVMRealOGT, near_size, size, ""),
                 inexact = LLVMBuildFCmp(gen->b, LLVMRealONE, back, value, "");
    LLVMValueRef bits = LLVMBuildBitCast(gen->b, near, i32, "");
    LLVMValueRef down = LLVMBuildSub(gen->b, bits, LLVMBuildZExt(gen->b, above, i32, ""), "");
    LLVMValueRef odd = LLVMBuildOr(gen->b, down, LLVMBuildZExt(gen->b, inexact, i32, ""), "");
    return LLVMBuildBitCast(gen->b, odd, f32, "");
}

static LLVMValueRef float_to_float(llvm_gen *gen, base_dtype from, base_dtype to, LLVMValueRef value)
{
    if (to.bits == 64)
        return from.bits == 64 ? value : LLVMBuildFPExt(gen->b, value, llvm_type(gen, to), "");
    if (to.bits == 32)
        return from.bits == 64 ? LLVMBuildFPTrunc(gen->b, value, llvm_type(gen, to), "") : value;
    return llvm_narrow(gen, to, from.bits == 64 ? round_to_odd(gen, value) : value);
}

/* ---- int -> float ---- */

/* 64 bits become a multiple of 2^16 whose last kept bit says whether something was dropped: few enough for an
 * exact double. */
static LLVMValueRef sticky(llvm_gen *gen, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef low = LLVMBuildAnd(gen->b, value, llvm_int_like(gen, type, 0xffff), ""),
                 high = LLVMBuildXor(gen->b, value, low, "");
    LLVMValueRef dropped = LLVMBuildICmp(gen->b, LLVMIntNE, low, LLVMConstNull(type), "");
    LLVMValueRef bit =
        LLVMBuildSelect(gen->b, dropped, llvm_int_like(gen, type, 0x10000), LLVMConstNull(type), "");
    LLVMValueRef size = LLVMBuildAdd(gen->b, value, llvm_int_like(gen, type, INT64_C(1) << 40), "");
    LLVMValueRef large =
        LLVMBuildICmp(gen->b, LLVMIntUGE, size, llvm_int_like(gen, type, INT64_C(1) << 41), "");
    return LLVMBuildSelect(gen->b, large, LLVMBuildOr(gen->b, high, bit, ""), value, "");
}

static LLVMValueRef int_to_float(llvm_gen *gen, base_dtype from, base_dtype to, LLVMValueRef value)
{
    bool is_signed = base_is_signed(from);
    if (to.bits == 16 && from.bits > 32)
        value = sticky(gen, value);
    LLVMTypeRef type =
        to.bits == 64 || (to.bits == 16 && from.bits > 24) ? like(gen->f64, value) : like(gen->f32, value);
    LLVMValueRef f =
        is_signed ? LLVMBuildSIToFP(gen->b, value, type, "") : LLVMBuildUIToFP(gen->b, value, type, "");
    if (to.bits != 16)
        return f;
    return llvm_narrow(gen, to, from.bits > 24 ? round_to_odd(gen, f) : f);
}

static LLVMValueRef int_to_int(llvm_gen *gen, base_dtype from, base_dtype to, LLVMValueRef value)
{
    if (to.bits == from.bits && !base_is_bool(from))
        return value;
    if (to.bits < from.bits && !base_is_bool(from))
        return LLVMBuildTrunc(gen->b, value, llvm_type(gen, to), "");
    return base_is_signed(from) ? LLVMBuildSExt(gen->b, value, llvm_type(gen, to), "")
                                : LLVMBuildZExt(gen->b, value, llvm_type(gen, to), "");
}

/* ---- all ---- */

static LLVMValueRef to_bool(llvm_gen *gen, base_dtype from, LLVMValueRef value)
{
    if (base_is_bool(from))
        return value;
    if (!base_is_float(from))
        return LLVMBuildICmp(gen->b, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
    LLVMValueRef f = llvm_widen(gen, from, value);
    return LLVMBuildFCmp(gen->b, LLVMRealUNE, f, LLVMConstNull(LLVMTypeOf(f)), "");
}

LLVMValueRef llvm_cast(llvm_gen *gen, base_dtype from, base_dtype to, LLVMValueRef value)
{
    if (base_dtype_same(from, to))
        return value;
    if (base_is_bool(to))
        return to_bool(gen, from, value);
    if (base_is_float(from) && base_is_float(to))
        return float_to_float(gen, from, to, llvm_widen(gen, from, value));
    if (base_is_float(from))
        return float_to_int(gen, from, to, llvm_widen(gen, from, value));
    return base_is_float(to) ? int_to_float(gen, from, to, value) : int_to_int(gen, from, to, value);
}
