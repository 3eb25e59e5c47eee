/* Dtypes as text; half and bfloat16 against arithmetic in doubles. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "base/base.h"

static void reads_back(base_dtype t, const char *expected)
{
    tec_context *cx = tec_context_new();
    base_dtype back;

    cr_assert(eq(str, (char *)base_dtype_text(cx, t), (char *)expected));
    cr_assert(base_dtype_parse(expected, &back), "%s", expected);
    cr_assert(base_dtype_same(t, back), "%s", expected);
    tec_context_free(cx);
}

Test(dtype, prints_and_reads_back)
{
    reads_back(BASE_F32, "f32");
    reads_back(BASE_F16, "f16");
    reads_back(BASE_F64, "f64");
    reads_back(BASE_BF16, "bf16");
    reads_back(BASE_BOOL, "bool");
    reads_back(BASE_HANDLE, "handle");
    reads_back(BASE_U8, "u8");
    reads_back(BASE_I64, "i64");
    reads_back(BASE_DTYPE(kDLUInt, 1, 1), "u1");
    reads_back(BASE_DTYPE(kDLInt, 4, 1), "i4");
    reads_back(base_dtype_lanes(BASE_F32, 16), "f32x16");
    reads_back(base_dtype_lanes(BASE_BOOL, 65535), "boolx65535");
    reads_back(base_dtype_lanes(BASE_BF16, 32), "bf16x32");
}

Test(dtype, reads_every_width_of_integer)
{
    char text[24];
    base_dtype back;

    for (int bits = 1; bits <= 64; bits++)
        for (int code = kDLInt; code <= kDLUInt; code++) {
            base_dtype t = BASE_DTYPE(code, bits, 4);
            cr_assert(base_dtype_parse(base_dtype_print(t, text, sizeof text), &back), "%s", text);
            cr_assert(base_dtype_same(t, back), "%s", text);
        }
}

Test(dtype, refuses_what_is_none)
{
    static const char *const bad[] = {
        "",     "f",      "f8",      "f31",    "f128",     "i0",           "i65",
        "i032", "bf32",   "bool8",   "f32x",   "f32x0",    "x4",           "f32x4x",
        "f32 ", " f32",   "float32", "i-8",    "i8x65536", "u99999999999", "handle64",
        "F32",  "bfloat", "int",     "f32x-1", "bool x2"};
    base_dtype t;

    for (int i = 0; i < BASE_COUNT(bad); i++)
        cr_assert(not(base_dtype_parse(bad[i], &t)), "'%s'", bad[i]);
}

Test(dtype, counts_bytes_of_an_element)
{
    cr_assert(eq(int, base_dtype_bytes(BASE_BOOL), 1));
    cr_assert(eq(int, base_dtype_bytes(BASE_DTYPE(kDLUInt, 1, 1)), 1));
    cr_assert(eq(int, base_dtype_bytes(BASE_DTYPE(kDLInt, 12, 1)), 2));
    cr_assert(eq(int, base_dtype_bytes(base_dtype_lanes(BASE_F32, 16)), 64));
}

Test(dtype, sorts_types_into_kinds)
{
    cr_assert(base_is_int(BASE_U8) && base_is_int(BASE_I64) && !base_is_int(BASE_BOOL) &&
              !base_is_int(BASE_F16));
    cr_assert(base_is_float(BASE_BF16) && base_is_float(BASE_F64) && !base_is_float(BASE_I32));
    cr_assert(base_is_signed(BASE_I8) && !base_is_signed(BASE_U8));
}

/* What a narrow float with `fraction` bits and least normal exponent `least` is nearest to `x`, ties to even:
 * computed on the value, where the code under test works on the bits. */
static double nearest(double x, int fraction, int least, double largest)
{
    if (x == 0 || isnan(x) || isinf(x))
        return x;
    int e = ilogb(x) < least ? least : ilogb(x);
    double rounded = ldexp(nearbyint(ldexp(x, fraction - e)), e - fraction);
    return fabs(rounded) > largest ? copysign(INFINITY, x) : rounded;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

static double value_of_half(unsigned h)
{
    double magnitude = (h & 0x7c00) == 0x7c00 ? (h & 0x3ff ? NAN : INFINITY)
                       : h & 0x7c00           ? ldexp(1 + (h & 0x3ff) / 1024.0, (int)(h >> 10 & 0x1f) - 15)
                                              : ldexp((h & 0x3ff) / 1024.0, -14);
    return h & 0x8000 ? -magnitude : magnitude;
}

static double value_of_bfloat(unsigned h)
{
    double magnitude = (h & 0x7f80) == 0x7f80 ? (h & 0x7f ? NAN : INFINITY)
                       : h & 0x7f80           ? ldexp(1 + (h & 0x7f) / 128.0, (int)(h >> 7 & 0xff) - 127)
                                              : ldexp((h & 0x7f) / 128.0, -126);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void check_half(double x)
{
    double expected = nearest(x, 10, -14, 65504), narrowed = base_half_to_float(base_double_to_half(x));

    cr_assert(same(narrowed, expected), "%a gave %a, not %a", x, narrowed, expected);
    float f = (float)x;
    expected = nearest(f, 10, -14, 65504);
    cr_assert(same(base_half_to_float(base_float_to_half(f)), expected), "float %a", f);
}

static void check_bfloat(double x)
{
    double expected = nearest(x, 7, -126, 0x1.fep127),
           narrowed = base_bfloat_to_float(base_double_to_bfloat(x));

    cr_assert(same(narrowed, expected), "%a gave %a, not %a", x, narrowed, expected);
    float f = (float)x;
    expected = nearest(f, 7, -126, 0x1.fep127);
    cr_assert(same(base_bfloat_to_float(base_float_to_bfloat(f)), expected), "float %a", f);
}

/* Rounding is monotone, so it is right everywhere when it is right at every value, at every midpoint between
 * neighbours and right beside them. */
static void check_around(double x, double y, void (*check)(double))
{
    double middle = x / 2 + y / 2;

    check(x);
    check(nextafter(x, INFINITY));
    check(nextafter(x, -INFINITY));
    check(nextafterf((float)x, INFINITY));
    check(middle);
    check(nextafter(middle, INFINITY));
    check(nextafter(middle, -INFINITY));
    check(nextafterf((float)middle, INFINITY));
    check(nextafterf((float)middle, -INFINITY));
}

Test(dtype, half_has_the_right_value_for_all_its_bits)
{
    for (unsigned h = 0; h < 0x10000; h++)
        cr_assert(same(base_half_to_float((uint16_t)h), value_of_half(h)), "0x%04x", h);
}

Test(dtype, bfloat_has_the_right_value_for_all_its_bits)
{
    for (unsigned h = 0; h < 0x10000; h++)
        cr_assert(same(base_bfloat_to_float((uint16_t)h), value_of_bfloat(h)), "0x%04x", h);
}

Test(dtype, half_rounds_to_nearest_even_everywhere)
{
    for (unsigned h = 0; h < 0x7c00; h++) {
        double x = value_of_half(h), y = h == 0x7bff ? 65536 : value_of_half(h + 1);
        check_around(x, y, check_half);
        check_around(-x, -y, check_half);
    }
}

Test(dtype, bfloat_rounds_to_nearest_even_everywhere)
{
    for (unsigned h = 0; h < 0x7f80; h++) {
        double x = value_of_bfloat(h), y = h == 0x7f7f ? 0x1p128 : value_of_bfloat(h + 1);
        check_around(x, y, check_bfloat);
        check_around(-x, -y, check_bfloat);
    }
}

Test(dtype, sixteen_bit_floats_survive_the_way_through_float)
{
    for (unsigned h = 0; h < 0x10000; h++) {
        if ((h & 0x7c00) != 0x7c00 || !(h & 0x3ff))
            cr_assert(eq(u16, base_float_to_half(base_half_to_float((uint16_t)h)), (uint16_t)h));
        if ((h & 0x7f80) != 0x7f80 || !(h & 0x7f))
            cr_assert(eq(u16, base_float_to_bfloat(base_bfloat_to_float((uint16_t)h)), (uint16_t)h));
    }
}

Test(dtype, nan_stays_nan_with_its_sign)
{
    cr_assert(isnan(base_half_to_float(base_float_to_half(NAN))));
    cr_assert(isnan(base_bfloat_to_float(base_float_to_bfloat(NAN))));
    for (int i = 0; i < 52; i++) { /* a payload in one low bit must not be cut away to infinity */
        uint64_t bits = (uint64_t)0xfff << 52 | (uint64_t)1 << i;
        double nan;
        memcpy(&nan, &bits, sizeof nan);
        cr_assert(isnan(base_half_to_float(base_double_to_half(nan))), "payload bit %d", i);
        cr_assert(eq(int, base_double_to_half(nan) >> 15, 1));
        cr_assert(isnan(base_bfloat_to_float(base_double_to_bfloat(nan))), "payload bit %d", i);
    }
}

Test(dtype, a_double_is_rounded_once)
{
    /* Through float, this would first become the midpoint and then go down to the even neighbour. */
    cr_assert(eq(u16, base_double_to_half(1 + 0x1p-11 + 0x1p-40), 0x3c01));
    cr_assert(eq(u16, base_float_to_half((float)(1 + 0x1p-11 + 0x1p-40)), 0x3c00));
}

Test(dtype, out_of_range_becomes_infinity_or_zero_with_its_sign)
{
    cr_assert(eq(u16, base_double_to_half(-1e300), 0xfc00));
    cr_assert(eq(u16, base_double_to_half(65519.99), 0x7bff));
    cr_assert(eq(u16, base_double_to_half(65520), 0x7c00));
    cr_assert(eq(u16, base_double_to_half(-1e-300), 0x8000));
    cr_assert(eq(u16, base_double_to_bfloat(-5e-324), 0x8000));
    cr_assert(eq(u16, base_double_to_bfloat(1e300), 0x7f80));
}
