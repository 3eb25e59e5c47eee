/* targets/llvm/cast.c -- conversions between dtypes.
 *
 * float -> int truncates, saturates and takes NaN to 0. The value is first brought into the range that
 * converts (NaN to 0), so that LLVM's conversion, which is undefined outside, is never outside; where the
 * largest int is no float, values beyond the largest float below it are replaced afterwards. To a 16-bit
 * float from a wider one rounds twice unless the first step keeps what the second needs: it rounds to odd.
 */
#include <math.h>

#include "targets/llvm/gen.h"

static LLVMTypeRef like(LLVMTypeRef scalar, LLVMValueRef v)
{
    return llvm_with_lanes(scalar, llvm_lanes(LLVMTypeOf(v)));
}

/* ---- float -> int ---- */

static LLVMValueRef clamp(llvm_gen *g, LLVMValueRef v, double low, double high)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    LLVMValueRef lo = llvm_float_like(g, type, low), hi = llvm_float_like(g, type, high);
    v = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOEQ, v, v, ""), v, llvm_float_like(g, type, 0), "");
    v = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOGT, v, lo, ""), v, lo, "");
    return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOLT, v, hi, ""), v, hi, "");
}

/* For integers narrower than 32 bits the conversion goes through 32 bits: the clamp has made the value fit.
 * `limit` is 2^bits, which is a float, while 2^bits - 1 may be none. */
static LLVMValueRef float_to_int(llvm_gen *g, base_dtype from, base_dtype to, LLVMValueRef v)
{
    bool is_signed = base_is_signed(to), is_double = from.bits == 64;
    int bits = to.bits - is_signed, precision = is_double ? 53 : 24;
    double limit = ldexp(1, bits); /* the first value that is too large */
    double high = bits <= precision ? limit - 1 : limit - ldexp(1, bits - precision);
    int wide = to.bits > 32 || (to.bits == 32 && !is_signed) ? 64 : 32;
    bool direct_unsigned = !is_signed && to.bits > 32;
    LLVMValueRef in = clamp(g, v, is_signed ? -limit : 0, high);
    LLVMTypeRef type = like(wide == 64 ? g->i64 : g->i32, v);
    LLVMValueRef out =
        direct_unsigned ? LLVMBuildFPToUI(g->b, in, type, "") : LLVMBuildFPToSI(g->b, in, type, "");
    if (to.bits < wide)
        out = LLVMBuildTrunc(g->b, out, llvm_type(g, to), "");
    if (bits <= precision)
        return out;
    LLVMValueRef beyond = LLVMBuildFCmp(g->b, LLVMRealOGE, v, llvm_float_like(g, LLVMTypeOf(v), limit), "");
    int64_t most = is_signed ? (int64_t)((UINT64_C(1) << bits) - 1) : -1;
    return LLVMBuildSelect(g->b, beyond, llvm_int_like(g, LLVMTypeOf(out), most), out, "");
}

/* ---- float -> float ---- */

/* double -> float, where inexact toward the neighbour with an odd last bit; a later rounding to fewer bits is
 * then as if direct. */
static LLVMValueRef round_to_odd(llvm_gen *g, LLVMValueRef v)
{
    LLVMTypeRef f32 = like(g->f32, v), i32 = like(g->i32, v), f64 = LLVMTypeOf(v);
    LLVMValueRef near = LLVMBuildFPTrunc(g->b, v, f32, ""), back = LLVMBuildFPExt(g->b, near, f64, "");
    LLVMValueRef size = llvm_intrinsic1(g, "llvm.fabs", f64, v),
                 near_size = llvm_intrinsic1(g, "llvm.fabs", f64, back);
    LLVMValueRef above = LLVMBuildFCmp(g->b, LLVMRealOGT, near_size, size, ""),
                 inexact = LLVMBuildFCmp(g->b, LLVMRealONE, back, v, "");
    LLVMValueRef bits = LLVMBuildBitCast(g->b, near, i32, "");
    LLVMValueRef down = LLVMBuildSub(g->b, bits, LLVMBuildZExt(g->b, above, i32, ""), "");
    LLVMValueRef odd = LLVMBuildOr(g->b, down, LLVMBuildZExt(g->b, inexact, i32, ""), "");
    return LLVMBuildBitCast(g->b, odd, f32, "");
}

static LLVMValueRef float_to_float(llvm_gen *g, base_dtype from, base_dtype to, LLVMValueRef v)
{
    if (to.bits == 64)
        return from.bits == 64 ? v : LLVMBuildFPExt(g->b, v, llvm_type(g, to), "");
    if (to.bits == 32)
        return from.bits == 64 ? LLVMBuildFPTrunc(g->b, v, llvm_type(g, to), "") : v;
    return llvm_narrow(g, to, from.bits == 64 ? round_to_odd(g, v) : v);
}

/* ---- int -> float ---- */

/* 64 bits become a multiple of 2^16 whose last kept bit says whether something was dropped: few enough for an
 * exact double. */
static LLVMValueRef sticky(llvm_gen *g, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    LLVMValueRef low = LLVMBuildAnd(g->b, v, llvm_int_like(g, type, 0xffff), ""),
                 high = LLVMBuildXor(g->b, v, low, "");
    LLVMValueRef dropped = LLVMBuildICmp(g->b, LLVMIntNE, low, LLVMConstNull(type), "");
    LLVMValueRef bit =
        LLVMBuildSelect(g->b, dropped, llvm_int_like(g, type, 0x10000), LLVMConstNull(type), "");
    LLVMValueRef size = LLVMBuildAdd(g->b, v, llvm_int_like(g, type, INT64_C(1) << 40), "");
    LLVMValueRef large = LLVMBuildICmp(g->b, LLVMIntUGE, size, llvm_int_like(g, type, INT64_C(1) << 41), "");
    return LLVMBuildSelect(g->b, large, LLVMBuildOr(g->b, high, bit, ""), v, "");
}

static LLVMValueRef int_to_float(llvm_gen *g, base_dtype from, base_dtype to, LLVMValueRef v)
{
    bool is_signed = base_is_signed(from);
    if (to.bits == 16 && from.bits > 32)
        v = sticky(g, v);
    LLVMTypeRef type = to.bits == 64 || (to.bits == 16 && from.bits > 24) ? like(g->f64, v) : like(g->f32, v);
    LLVMValueRef f = is_signed ? LLVMBuildSIToFP(g->b, v, type, "") : LLVMBuildUIToFP(g->b, v, type, "");
    if (to.bits != 16)
        return f;
    return llvm_narrow(g, to, from.bits > 24 ? round_to_odd(g, f) : f);
}

static LLVMValueRef int_to_int(llvm_gen *g, base_dtype from, base_dtype to, LLVMValueRef v)
{
    if (to.bits == from.bits && !base_is_bool(from))
        return v;
    if (to.bits < from.bits && !base_is_bool(from))
        return LLVMBuildTrunc(g->b, v, llvm_type(g, to), "");
    return base_is_signed(from) ? LLVMBuildSExt(g->b, v, llvm_type(g, to), "")
                                : LLVMBuildZExt(g->b, v, llvm_type(g, to), "");
}

/* ---- all ---- */

static LLVMValueRef to_bool(llvm_gen *g, base_dtype from, LLVMValueRef v)
{
    if (base_is_bool(from))
        return v;
    if (!base_is_float(from))
        return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    LLVMValueRef f = llvm_widen(g, from, v);
    return LLVMBuildFCmp(g->b, LLVMRealUNE, f, LLVMConstNull(LLVMTypeOf(f)), "");
}

LLVMValueRef llvm_cast(llvm_gen *g, base_dtype from, base_dtype to, LLVMValueRef v)
{
    if (base_dtype_same(from, to))
        return v;
    if (base_is_bool(to))
        return to_bool(g, from, v);
    if (base_is_float(from) && base_is_float(to))
        return float_to_float(g, from, to, llvm_widen(g, from, v));
    if (base_is_float(from))
        return float_to_int(g, from, to, llvm_widen(g, from, v));
    return base_is_float(to) ? int_to_float(g, from, to, v) : int_to_int(g, from, to, v);
}
