/* dtype.c -- dtypes as text, and the two sixteen-bit floats.
 *
 * Narrowing works on the bits of a double, which holds every float exactly: so there is one rounding,
 * whatever the source.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static const char *code_text(int code)
{
    switch (code) {
    case kDLInt: return "i";
    case kDLUInt: return "u";
    case kDLFloat: return "f";
    case kDLBfloat: return "bf";
    case kDLComplex: return "c";
    default: return NULL;
    }
}

/* Writes into the caller's buffer, since messages may be needed where nothing can be allocated. */
const char *base_dtype_print(base_dtype dtype, char *buffer, size_t size)
{
    char lanes[8] = "";

    if (dtype.lanes != 1)
        snprintf(lanes, sizeof lanes, "x%d", dtype.lanes);
    if (base_is_bool(dtype))
        snprintf(buffer, size, "bool%s", lanes);
    else if (dtype.code == kDLOpaqueHandle)
        snprintf(buffer, size, "handle%s", lanes);
    else if (code_text(dtype.code))
        snprintf(buffer, size, "%s%d%s", code_text(dtype.code), dtype.bits, lanes);
    else
        snprintf(buffer, size, "code%d.%d%s", dtype.code, dtype.bits, lanes);
    return buffer;
}

const char *base_dtype_text(tec_context *cx, base_dtype dtype)
{
    char buffer[32];

    return base_strdup(cx, base_dtype_print(dtype, buffer, sizeof buffer));
}

/* A decimal number from 1 to `limit` without leading zeros; steps over it. */
static bool read_number(const char **text, int limit, int *out)
{
    int n = 0;

    if (**text < '1' || **text > '9')
        return false;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        n = n * 10 + (**text - '0');
        if (n > limit)
            return false;
    }
    *out = n;
    return true;
}

static bool has_width(int code, int bits)
{
    if (code == kDLBfloat)
        return bits == 16;
    if (code == kDLFloat)
        return bits == 16 || bits == 32 || bits == 64;
    return bits <= 64;
}

/* The part before the lanes; moves *text behind it. */
static bool read_element(const char **text, base_dtype *out)
{
    static const struct {
        const char *word;
        uint8_t code, bits; /* 0: the width follows the word */
    } words[] = {{"bool", kDLBool, 8}, {"bf", kDLBfloat, 0}, {"handle", kDLOpaqueHandle, 64},
                 {"i", kDLInt, 0},     {"u", kDLUInt, 0},    {"f", kDLFloat, 0}};

    for (int i = 0; i < BASE_COUNT(words); i++) {
        if (!base_starts_with(*text, words[i].word))
            continue;
        int bits = words[i].bits;
        *text += strlen(words[i].word);
        if (!bits && (!read_number(text, 64, &bits) || !has_width(words[i].code, bits)))
            return false;
        *out = BASE_DTYPE(words[i].code, bits, 1);
        return true;
    }
    return false;
}

/* "f32", "bool", "i8x4"; false for anything else, without a message. */
bool base_dtype_parse(const char *text, base_dtype *out)
{
    base_dtype t;
    int lanes = 1;

    if (!read_element(&text, &t))
        return false;
    if (*text == 'x') {
        text++;
        if (!read_number(&text, UINT16_MAX, &lanes))
            return false;
    }
    if (*text)
        return false;
    *out = base_dtype_lanes(t, lanes);
    return true;
}

static float float_of_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

float base_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;

    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    if (exponent == 0x1f)
        return float_of_bits(sign | 0x7f800000 | fraction << 13);
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

float base_bfloat_to_float(uint16_t h)
{
    return float_of_bits((uint32_t)h << 16);
}

/* The top 16 bits of a narrow format: sign, `exponent_bits`, and a fraction in the rest; to nearest, ties to
 * even. */
static uint16_t narrow(double value, int exponent_bits)
{
    const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const uint64_t infinity = (((uint64_t)1 << exponent_bits) - 1) << fraction_bits;
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    const uint64_t sign = bits >> 63 << 15, fraction = bits & 0xfffffffffffffu;
    const int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff) /* a NaN stays one: quiet, with the top of its payload */
        return (uint16_t)(sign | infinity |
                          (fraction ? 1u << (fraction_bits - 1) | fraction >> (52 - fraction_bits) : 0));

    int drop = 52 - fraction_bits, e = exponent - 1023 + bias;
    if (e <= 0) { /* below the normal range the fraction loses a bit for each step */
        drop += 1 - e;
        e = 1;
    }
    if (exponent == 0 || drop > 54)
        return (uint16_t)sign;
    const uint64_t whole = fraction | (uint64_t)1 << 52, half = (uint64_t)1 << (drop - 1),
                   rest = whole & (2 * half - 1);
    uint64_t kept = whole >> drop;
    kept += rest > half || (rest == half && (kept & 1));
    /* `kept` carries the leading one, which steps the exponent up by one, and so does a carry out of the
     * rounding. */
    const uint64_t result = ((uint64_t)(e - 1) << fraction_bits) + kept;
    return (uint16_t)(sign | (result < infinity ? result : infinity));
}

uint16_t base_double_to_half(double f)
{
    return narrow(f, 5);
}

uint16_t base_double_to_bfloat(double f)
{
    return narrow(f, 8);
}

uint16_t base_float_to_half(float f)
{
    return narrow(f, 5);
}

uint16_t base_float_to_bfloat(float f)
{
    return narrow(f, 8);
}
