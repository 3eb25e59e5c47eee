/* worker/tensors.c -- see tensors.h. */
#include "worker/tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- random numbers ---- */

static void set_float(const DLTensor *tensor, int64_t index, double value)
{
    char *p = (char *)tensor->data + index * base_dtype_bytes(tensor->dtype);

    if (tensor->dtype.code == kDLBfloat)
        *(uint16_t *)(void *)p = base_double_to_bfloat(value);
    else if (tensor->dtype.bits == 16)
        *(uint16_t *)(void *)p = base_double_to_half(value);
    else if (tensor->dtype.bits == 32)
        *(float *)(void *)p = (float)value;
    else
        *(double *)(void *)p = value;
}

/* Floats between -1 and 1, integers from 0 to 7: equal seeds give equal data on every machine. */
void worker_fill_random(DLTensor *tensor, uint64_t seed)
{
    int64_t n = tec_tensor_elements(tensor);
    int bytes = base_dtype_bytes(tensor->dtype);

    for (int64_t i = 0; i < n; i++) {
        double u = base_random_unit(&seed);

        if (base_is_float(tensor->dtype))
            set_float(tensor, i, 2 * u - 1);
        else {
            int64_t v = (int64_t)(u * (base_is_bool(tensor->dtype) ? 2 : 8));

            memcpy((char *)tensor->data + i * bytes, &v, (size_t)bytes);
        }
    }
}

/* ---- comparing ---- */

/* Element index of a float tensor of any width. */
double worker_get_float(const DLTensor *tensor, int64_t index)
{
    const char *p =
        (const char *)tensor->data + tensor->byte_offset + index * base_dtype_bytes(tensor->dtype);
    uint16_t h;
    float f;
    double d;

    if (tensor->dtype.bits == 16) {
        memcpy(&h, p, sizeof h);
        return tensor->dtype.code == kDLBfloat ? base_bfloat_to_float(h) : base_half_to_float(h);
    }
    if (tensor->dtype.bits == 32) {
        memcpy(&f, p, sizeof f);
        return f;
    }
    memcpy(&d, p, sizeof d);
    return d;
}

int64_t worker_get_int(const DLTensor *tensor, int64_t i)
{
    int bytes = base_dtype_bytes(tensor->dtype);
    int64_t v = 0;

    memcpy(&v, (const char *)tensor->data + tensor->byte_offset + i * bytes, (size_t)bytes);
    return v;
}

static const char *position(const DLTensor *tensor, int64_t nth, char *text, size_t size)
{
    int64_t index[64];
    size_t n = 0;

    for (int d = tensor->ndim - 1; d >= 0; d--) {
        index[d] = nth % tensor->shape[d];
        nth /= tensor->shape[d];
    }
    text[0] = '\0';
    for (int d = 0; d < tensor->ndim && n < size; d++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld", d ? ", " : "", (long long)index[d]);
    return text;
}

/* How far two floats may lie apart: |a-b| <= relative * |b| + max(absolute, scale * greatest finite |b|). */
typedef struct {
    double relative, absolute, scale;
} tolerance;

/* The neighbour of a bfloat16 lies up to 2^-7 of its value away: another order of additions, or another
 * rounding, gives that. */
static tolerance tolerance_of(base_dtype dtype)
{
    if (dtype.code == kDLBfloat)
        return (tolerance){1.0 / 128, 1e-7, 1e-6};
    return dtype.bits == 64 ? (tolerance){1e-9, 1e-12, 1e-12} : (tolerance){1e-3, 1e-7, 1e-6};
}

/* An infinity is near itself alone: the general rule would allow any distance from it. */
static bool is_near(double a, double b, double relative, double absolute)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= relative * fabs(b) + absolute;
}

/* The scale of the tolerance: a difference is small beside the greatest value of the tensor, or it is wrong.
 */
static double greatest_finite(const DLTensor *tensor)
{
    int64_t n = tec_tensor_elements(tensor);
    double most = 0;

    for (int64_t i = 0; i < n; i++) {
        double b = fabs(worker_get_float(tensor, i));

        most = isfinite(b) && b > most ? b : most;
    }
    return most;
}

/* Near is relative to the value, with an absolute part that grows with the largest value: sums of many terms
 * lose digits where they cancel. `text`: the first element that differs, and how many do. */
static bool compare_floats(const DLTensor *got, const DLTensor *want, tolerance t, char *text, size_t size)
{
    int64_t n = tec_tensor_elements(want), differ = 0, first = -1;
    double absolute = fmax(t.absolute, t.scale * greatest_finite(want));
    int digits = want->dtype.bits == 64 ? 17 : 9;
    char at[128];

    for (int64_t i = 0; i < n; i++)
        if (!is_near(worker_get_float(got, i), worker_get_float(want, i), t.relative, absolute) &&
            differ++ == 0)
            first = i;
    if (differ)
        snprintf(text, size, "[%s] is %.*g, expected %.*g (%lld of %lld elements differ)",
                 position(want, first, at, sizeof at), digits, worker_get_float(got, first), digits,
                 worker_get_float(want, first), (long long)differ, (long long)n);
    return differ == 0;
}

/* The element as the number that its dtype means: signed, unsigned, or true and false. */
static const char *int_text(const DLTensor *tensor, int64_t index, char *text, size_t size)
{
    int unused = 64 - 8 * base_dtype_bytes(tensor->dtype);
    uint64_t bits = (uint64_t)worker_get_int(tensor, index);

    if (base_is_bool(tensor->dtype))
        snprintf(text, size, "%s", bits ? "true" : "false");
    else if (base_is_signed(tensor->dtype))
        snprintf(text, size, "%lld", (long long)((int64_t)(bits << unused) >> unused));
    else
        snprintf(text, size, "%llu", (unsigned long long)bits);
    return text;
}

/* Integers must be equal. The message names the first element that differs, and how many do. */
static bool compare_ints(const DLTensor *got, const DLTensor *want, char *text, size_t size)
{
    int64_t n = tec_tensor_elements(want), differ = 0, first = -1;
    char at[128], a[24], b[24];

    for (int64_t i = 0; i < n; i++)
        if (worker_get_int(got, i) != worker_get_int(want, i) && differ++ == 0)
            first = i;
    if (differ)
        snprintf(text, size, "[%s] is %s, expected %s (%lld of %lld elements differ)",
                 position(want, first, at, sizeof at), int_text(got, first, a, sizeof a),
                 int_text(want, first, b, sizeof b), (long long)differ, (long long)n);
    return differ == 0;
}

/* Whether both tensors agree; `text` says where they do not. */
static bool compare(const DLTensor *got, const DLTensor *want, tolerance floats, char *text, size_t size)
{
    char a[160], b[160];
    bool same = got->ndim == want->ndim && base_dtype_same(got->dtype, want->dtype);

    for (int d = 0; same && d < want->ndim; d++)
        same = got->shape[d] == want->shape[d];
    if (!same) {
        snprintf(text, size, "is %s, expected %s", tec_tensor_text(got, a, sizeof a),
                 tec_tensor_text(want, b, sizeof b));
        return false;
    }
    return base_is_float(want->dtype) ? compare_floats(got, want, floats, text, size)
                                      : compare_ints(got, want, text, size);
}

bool worker_compare(const DLTensor *got, const DLTensor *want, char *text, size_t size)
{
    return compare(got, want, tolerance_of(want->dtype), text, size);
}

/* A unit of rounding is half the distance of 1 to its next neighbour. */
bool worker_compare_model(const DLTensor *got, const DLTensor *want, char *text, size_t size)
{
    tolerance t = tolerance_of(want->dtype);

    if (base_is_float(want->dtype) && want->dtype.bits == 16)
        t.scale = 8 * (want->dtype.code == kDLBfloat ? 0x1p-8 : 0x1p-11);
    return compare(got, want, t, text, size);
}

bool worker_compare_rough(const DLTensor *got, const DLTensor *want, char *text, size_t size)
{
    tolerance t = tolerance_of(want->dtype);

    t.relative = fmax(t.relative, 1.0 / 256);
    t.scale = 1.0 / 256;
    return compare(got, want, t, text, size);
}
