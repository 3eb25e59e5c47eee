/* tools/data.c -- see data.h. */
#include "tools/data.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/onnx/onnx.h"
#include "tools/args.h"

/* ---- making ---- */

DLTensor *tool_new_tensor(tec_context *cx, DLDataType t, int ndim, const int64_t *shape)
{
    DLTensor *x = base_new(cx, DLTensor);
    int64_t *dims = base_array(cx, int64_t, ndim + 1);

    for (int i = 0; i < ndim; i++)
        dims[i] = shape[i];
    *x = (DLTensor){.device = {kDLCPU, 0}, .ndim = ndim, .dtype = t, .shape = dims};
    char *data = base_alloc(cx, (size_t)tec_tensor_bytes(x) + 64);
    x->data = (void *)(((uintptr_t)data + 63) & ~(uintptr_t)63);
    return x;
}

static void set_float(const DLTensor *t, int64_t i, double v)
{
    char *p = (char *)t->data + i * base_dtype_bytes(t->dtype);

    if (t->dtype.code == kDLBfloat)
        *(uint16_t *)(void *)p = base_double_to_bfloat(v);
    else if (t->dtype.bits == 16)
        *(uint16_t *)(void *)p = base_double_to_half(v);
    else if (t->dtype.bits == 32)
        *(float *)(void *)p = (float)v;
    else
        *(double *)(void *)p = v;
}

void tool_fill_random(DLTensor *t, uint64_t seed)
{
    int64_t n = tec_tensor_elements(t);
    int bytes = base_dtype_bytes(t->dtype);

    for (int64_t i = 0; i < n; i++) {
        double u = base_random_unit(&seed);

        if (base_is_float(t->dtype))
            set_float(t, i, 2 * u - 1);
        else {
            int64_t v = (int64_t)(u * (base_is_bool(t->dtype) ? 2 : 8));

            memcpy((char *)t->data + i * bytes, &v, (size_t)bytes);
        }
    }
}

/* ---- files ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static void take_error(tec_context *cx, const tec_error *err)
{
    base_fail(cx, err->status, (base_loc){0}, "%s", err->text);
}

static DLTensor *read_npy(tec_context *cx, const char *path)
{
    tec_error err = {0};
    tec_array *a = tec_npy_read(path, &err);
    DLTensor *t = NULL;

    if (a) {
        const DLTensor *from = tec_array_tensor(a);

        t = tool_new_tensor(cx, from->dtype, from->ndim, from->shape);
        if (!tec_tensor_copy(t, from, &err))
            t = NULL;
    }
    if (!t)
        take_error(cx, &err);
    tec_array_free(a);
    return t;
}

static DLTensor *read_pb(tec_context *cx, const char *path)
{
    const op_constant *c = onnx_read_tensor(cx, path, NULL);
    int64_t shape[64];

    if (!c)
        return NULL;
    for (int i = 0; i < c->type.n; i++)
        ir_is_int(c->type.dim[i], &shape[i]);
    DLTensor *t = tool_new_tensor(cx, c->type.dtype, c->type.n, shape);
    if (c->bytes)
        memcpy(t->data, c->data, (size_t)c->bytes);
    return t;
}

DLTensor *tool_read(tec_context *cx, const char *path)
{
    if (ends_with(path, ".npy"))
        return read_npy(cx, path);
    if (ends_with(path, ".pb"))
        return read_pb(cx, path);
    return base_fail(cx, TEC_INVALID, (base_loc){path, 0}, "expected a .npy or .pb file");
}

bool tool_write(tec_context *cx, const char *path, const DLTensor *t)
{
    tec_error err = {0};

    if (ends_with(path, ".pb")) {
        const ir_expr **dim = base_array(cx, const ir_expr *, t->ndim);

        for (int i = 0; i < t->ndim; i++)
            dim[i] = ir_int(cx, t->shape[i]);
        op_constant c = {{t->dtype, t->ndim, dim}, (char *)t->data + t->byte_offset, tec_tensor_bytes(t)};
        return onnx_write_tensor(cx, path, "", &c);
    }
    if (tec_npy_write(path, t, &err))
        return true;
    take_error(cx, &err);
    return false;
}

/* ---- comparing ---- */

static double get_float(const DLTensor *t, int64_t i)
{
    const char *p = (const char *)t->data + t->byte_offset + i * base_dtype_bytes(t->dtype);
    uint16_t h;
    float f;
    double d;

    if (t->dtype.bits == 16) {
        memcpy(&h, p, sizeof h);
        return t->dtype.code == kDLBfloat ? base_bfloat_to_float(h) : base_half_to_float(h);
    }
    if (t->dtype.bits == 32) {
        memcpy(&f, p, sizeof f);
        return f;
    }
    memcpy(&d, p, sizeof d);
    return d;
}

static int64_t get_int(const DLTensor *t, int64_t i)
{
    int bytes = base_dtype_bytes(t->dtype);
    int64_t v = 0;

    memcpy(&v, (const char *)t->data + t->byte_offset + i * bytes, (size_t)bytes);
    return v;
}

static const char *position(const DLTensor *t, int64_t i, char *text, size_t size)
{
    int64_t index[64];
    size_t n = 0;

    for (int d = t->ndim - 1; d >= 0; d--) {
        index[d] = i % t->shape[d];
        i /= t->shape[d];
    }
    text[0] = '\0';
    for (int d = 0; d < t->ndim && n < size; d++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld", d ? ", " : "", (long long)index[d]);
    return text;
}

static bool compare_floats(const DLTensor *got, const DLTensor *want, char *text, size_t size)
{
    int64_t n = tec_tensor_elements(want), differ = 0, first = -1;
    /* One unit in the last place of bfloat16 is more than a thousandth. */
    double relative = want->dtype.code == kDLBfloat ? 1.0 / 128 : 1e-3, most = 0;
    char at[128];

    for (int64_t i = 0; i < n; i++) {
        double b = fabs(get_float(want, i));

        most = isfinite(b) && b > most ? b : most;
    }
    for (int64_t i = 0; i < n; i++) {
        double a = get_float(got, i), b = get_float(want, i);
        bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= relative * fabs(b) + fmax(1e-7, 1e-6 * most);

        if (!same && differ++ == 0)
            first = i;
    }
    if (differ)
        snprintf(text, size, "[%s] is %.9g, expected %.9g (%lld of %lld elements differ)", position(want, first, at, sizeof at), get_float(got, first),
                 get_float(want, first), (long long)differ, (long long)n);
    return differ == 0;
}

static bool compare_ints(const DLTensor *got, const DLTensor *want, char *text, size_t size)
{
    int64_t n = tec_tensor_elements(want);
    char at[128];

    for (int64_t i = 0; i < n; i++)
        if (get_int(got, i) != get_int(want, i)) {
            snprintf(text, size, "[%s] is %lld, expected %lld", position(want, i, at, sizeof at), (long long)get_int(got, i), (long long)get_int(want, i));
            return false;
        }
    return true;
}

bool tool_compare(const DLTensor *got, const DLTensor *want, char *text, size_t size)
{
    char a[160], b[160];
    bool same = got->ndim == want->ndim && base_dtype_same(got->dtype, want->dtype);

    for (int d = 0; same && d < want->ndim; d++)
        same = got->shape[d] == want->shape[d];
    if (!same) {
        snprintf(text, size, "is %s, expected %s", tec_tensor_text(got, a, sizeof a), tec_tensor_text(want, b, sizeof b));
        return false;
    }
    return base_is_float(want->dtype) ? compare_floats(got, want, text, size) : compare_ints(got, want, text, size);
}

/* ---- what commands share ---- */

int tool_fail(const char *command, const tec_context *cx)
{
    fprintf(stderr, "tec %s: %s\n", command, tec_context_error(cx) ? tec_context_error(cx) : "failed without a reason");
    return TOOL_FAILED;
}

int tool_fail_run(const char *command, const tec_error *err)
{
    fprintf(stderr, "tec %s: %s\n", command, err->text);
    return TOOL_FAILED;
}

const target *tool_target(tec_context *cx, const char *text, int64_t threads)
{
    const target *t = target_parse(cx, text);

    if (!t || threads <= 0)
        return t;
    target *with = base_copy(cx, t, sizeof *t);
    with->num_cores = (int)threads;
    return with;
}

void tool_hold_interrupts(bool hold)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

const char *tool_seconds(double s, char *buffer, size_t size)
{
    if (s < 1e-6)
        snprintf(buffer, size, "%.0f ns", s * 1e9);
    else if (s < 1e-3)
        snprintf(buffer, size, "%.2f us", s * 1e6);
    else if (s < 1)
        snprintf(buffer, size, "%.3f ms", s * 1e3);
    else
        snprintf(buffer, size, "%.3f s", s);
    return buffer;
}
