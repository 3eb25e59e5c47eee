/* graph/onnx/tensor.c -- ONNX tensors to constants and back: typed fields, raw bytes, data beside the
 * model. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/onnx/import.h"

/* ---- memory for protobuf-c: the context's ---- */

static void *allocate(void *cx, size_t size)
{
    return base_alloc(cx, size);
}

static void release(void *cx, void *data)
{
    (void)cx;
    (void)data;
}

ProtobufCAllocator *onnx_allocator(tec_context *cx)
{
    ProtobufCAllocator *a = base_new(cx, ProtobufCAllocator);

    *a = (ProtobufCAllocator){allocate, release, cx};
    return a;
}

/* ---- dtypes ---- */

static const struct {
    int32_t data_type;
    base_dtype dtype;
} dtypes[] = {
    {1, {kDLFloat, 32, 1}},   {2, {kDLUInt, 8, 1}},    {3, {kDLInt, 8, 1}},    {4, {kDLUInt, 16, 1}},
    {5, {kDLInt, 16, 1}},     {6, {kDLInt, 32, 1}},    {7, {kDLInt, 64, 1}},   {9, {kDLBool, 8, 1}},
    {10, {kDLFloat, 16, 1}},  {11, {kDLFloat, 64, 1}}, {12, {kDLUInt, 32, 1}}, {13, {kDLUInt, 64, 1}},
    {16, {kDLBfloat, 16, 1}},
};

bool onnx_dtype(int64_t data_type, base_dtype *out)
{
    for (int i = 0; i < BASE_COUNT(dtypes); i++)
        if (dtypes[i].data_type == data_type) {
            *out = dtypes[i].dtype;
            return true;
        }
    return false;
}

int32_t onnx_data_type(base_dtype dtype)
{
    for (int i = 0; i < BASE_COUNT(dtypes); i++)
        if (base_dtype_same(dtypes[i].dtype, dtype))
            return dtypes[i].data_type;
    return 0;
}

const char *onnx_type_name(tec_context *cx, int64_t data_type)
{
    static const char *const names[] = {
        "undefined",      "float",    "uint8",        "int8",           "uint16",
        "int16",          "int32",    "int64",        "string",         "bool",
        "float16",        "double",   "uint32",       "uint64",         "complex64",
        "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
        "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
        "uint2",          "int2"};

    if (data_type >= 0 && data_type < BASE_COUNT(names))
        return names[data_type];
    return base_format(cx, "%lld, which ONNX does not have", (long long)data_type);
}

/* ---- reading ---- */

typedef struct {
    tec_context *cx;
    const char *path, *what;
    const Onnx__TensorProto *t;
    base_dtype dtype;
    int64_t elements, bytes;
} reader;

static void *fail(const reader *in, tec_status status, const char *text)
{
    return base_fail(in->cx, status, (base_loc){.file = in->path}, "tensor '%s': %s",
                     in->t->name && *in->t->name ? in->t->name : in->what, text);
}

/* Elements and bytes of the tensor, each checked for overflow: the dimensions come from a file. */
static bool count(reader *in)
{
    in->elements = 1;
    if (in->t->n_dims > ONNX_MAX_RANK) {
        fail(in, TEC_UNSUPPORTED,
             base_format(in->cx, "expected at most %d dimensions, found %zu", ONNX_MAX_RANK, in->t->n_dims));
        return false;
    }
    for (size_t i = 0; i < in->t->n_dims; i++)
        if (in->t->dims[i] < 0 || __builtin_mul_overflow(in->elements, in->t->dims[i], &in->elements)) {
            fail(in, TEC_INVALID,
                 base_format(in->cx,
                             "expected extents of at least 0 whose product can be counted, found %lld in "
                             "dimension %zu",
                             (long long)in->t->dims[i], i));
            return false;
        }
    if (__builtin_mul_overflow(in->elements, (int64_t)base_dtype_bytes(in->dtype), &in->bytes)) {
        fail(in, TEC_INVALID, "its size in bytes is too large to count");
        return false;
    }
    return true;
}

/* Elements that stand in a typed field of `length` values of `size` bytes, each narrowed to the dtype. */
static void *from_field(const reader *in, const void *field, size_t length, size_t size)
{
    size_t width = (size_t)base_dtype_bytes(in->dtype);

    if ((int64_t)length != in->elements)
        return fail(
            in, TEC_INVALID,
            base_format(in->cx, "expected %lld elements, found %zu", (long long)in->elements, length));
    char *data = base_alloc(in->cx, (size_t)in->bytes + 1);
    for (size_t i = 0; i < length; i++)
        memcpy(data + i * width, (const char *)field + i * size, width < size ? width : size);
    return data;
}

/* ONNX keeps small types in the fields of larger ones: int8, bool and float16 lie in int32_data. */
static void *from_typed_fields(const reader *in)
{
    const Onnx__TensorProto *t = in->t;

    if (base_is_float(in->dtype) && in->dtype.bits == 32)
        return from_field(in, t->float_data, t->n_float_data, sizeof(float));
    if (base_is_float(in->dtype) && in->dtype.bits == 64)
        return from_field(in, t->double_data, t->n_double_data, sizeof(double));
    if (base_dtype_same(in->dtype, BASE_I64))
        return from_field(in, t->int64_data, t->n_int64_data, sizeof(int64_t));
    if (in->dtype.code == kDLUInt && in->dtype.bits >= 32)
        return from_field(in, t->uint64_data, t->n_uint64_data, sizeof(uint64_t));
    return from_field(in, t->int32_data, t->n_int32_data, sizeof(int32_t));
}

static const char *entry(const Onnx__TensorProto *TensorProto, const char *key)
{
    for (size_t i = 0; i < TensorProto->n_external_data; i++)
        if (base_same(TensorProto->external_data[i]->key, key))
            return TensorProto->external_data[i]->value;
    return NULL;
}

/* A name that stays in its folder: no absolute path, no step up. */
static bool stays_beside(const char *name)
{
    if (!name || !*name || *name == '/')
        return false;
    for (const char *p = name; *p; p += strcspn(p, "/"), p += *p == '/')
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
            return false;
    return true;
}

/* Opens `name` under the folder of the model, step by step, so that no symbolic link leads elsewhere; -1 with
 * errno. */
static int open_beside(const reader *in, const char *name)
{
    const char *slash = strrchr(in->path, '/');
    int at = open(slash ? base_format(in->cx, "%.*s", (int)(slash - in->path) + 1, in->path) : ".",
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    while (at >= 0) {
        size_t n = strcspn(name, "/");
        bool last = !name[n + strspn(name + n, "/")];
        /* Without O_NONBLOCK, opening a FIFO would wait for somebody to write into it. */
        int next = openat(at, base_strndup(in->cx, name, n),
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (last ? 0 : O_DIRECTORY)),
            why = errno;

        close(at);
        errno = why;
        at = next;
        if (last)
            break;
        name += n + strspn(name + n, "/");
    }
    return at;
}

/* A number of bytes that stands in an entry as text; 0 where it is left out. */
static bool read_bytes(const reader *in, const char *key, int64_t *out)
{
    const char *text = entry(in->t, key);
    char *end;

    *out = 0;
    if (!text)
        return true;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno)
        return true;
    fail(in, TEC_INVALID,
         base_format(in->cx, "the %s of its data is '%s', expected a number of bytes", key, text));
    return false;
}

/* Reads in->bytes bytes at an offset of an open file. */
static void *read_at(const reader *in, int fd, const char *name, int64_t at)
{
    char *data = base_alloc(in->cx, (size_t)in->bytes + 1);

    for (int64_t n = 0; n < in->bytes;) {
        ssize_t got = pread(fd, data + n, (size_t)(in->bytes - n), at + n);

        if (got == 0 || (got < 0 && errno != EINTR))
            return fail(in, TEC_IO,
                        base_format(in->cx, "cannot read '%s': %s", name,
                                    got ? strerror(errno) : "it ends too early"));
        n += got > 0 ? got : 0;
    }
    return data;
}

/* Data beside the model: the place must lie in the file and be as long as the type asks for. */
static void *from_open_file(const reader *in, int fd, const char *name)
{
    int64_t at, length;
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return fail(in, TEC_INVALID,
                    base_format(in->cx, "its data is in '%s', which is not a regular file", name));
    if (!read_bytes(in, "offset", &at) || !read_bytes(in, "length", &length))
        return NULL;
    if (entry(in->t, "length") && length != in->bytes)
        return fail(in, TEC_INVALID,
                    base_format(in->cx, "expected %lld bytes, found %lld in '%s'", (long long)in->bytes,
                                (long long)length, name));
    if (at > st.st_size || st.st_size - at < in->bytes)
        return fail(in, TEC_INVALID,
                    base_format(in->cx, "'%s' has %lld bytes, but %lld are expected from byte %lld on", name,
                                (long long)st.st_size, (long long)in->bytes, (long long)at));
    return read_at(in, fd, name, at);
}

/* A regular file in or under the folder of the model. */
static void *from_file(const reader *in)
{
    const char *name = entry(in->t, "location");

    if (!stays_beside(name))
        return fail(in, TEC_INVALID,
                    base_format(in->cx, "its data is in '%s': expected a file in the folder of the model",
                                name ? name : ""));
    int fd = open_beside(in, name);
    if (fd < 0)
        return errno == ELOOP
                   ? fail(in, TEC_INVALID,
                          base_format(in->cx, "its data is in '%s', which is a symbolic link", name))
                   : fail(
                         in, TEC_IO,
                         base_format(in->cx, "cannot open '%s' beside the model: %s", name, strerror(errno)));
    void *data = from_open_file(in, fd, name);
    close(fd);
    return data;
}

static void *read_data(const reader *in)
{
    if (in->t->data_location == 1)
        return from_file(in);
    if (!in->t->has_raw_data)
        return in->elements || in->t->n_int32_data || in->t->n_float_data ? from_typed_fields(in)
                                                                          : base_alloc(in->cx, 1);
    if ((int64_t)in->t->raw_data.len != in->bytes)
        return fail(
            in, TEC_INVALID,
            base_format(in->cx, "expected %lld bytes, found %zu", (long long)in->bytes, in->t->raw_data.len));
    return in->bytes ? base_copy(in->cx, in->t->raw_data.data, in->t->raw_data.len) : base_alloc(in->cx, 1);
}

/* Bytes that lie in the model's file; they are copied where they would not stay there. */
static const void *from_span(const reader *in, const onnx_span *span, bool stays)
{
    if ((int64_t)span->size != in->bytes)
        return fail(in, TEC_INVALID,
                    base_format(in->cx, "%lld bytes expected, %zu found", (long long)in->bytes, span->size));
    return stays ? span->data : base_copy(in->cx, span->data, span->size);
}

/* The tensor as a constant in the context; NULL with an error. `what` and the tensor's name are for messages.
 */
const op_constant *onnx_tensor(tec_context *cx, const char *path, const onnx_weights *weights,
                               const Onnx__TensorProto *TensorProto, const char *what)
{
    reader r = {.cx = cx, .path = path, .what = what, .t = TensorProto};
    const onnx_span *lifted = onnx_lifted(weights, TensorProto);
    const ir_expr **dim = base_array(cx, const ir_expr *, TensorProto->n_dims);

    if (!onnx_dtype(TensorProto->data_type, &r.dtype))
        return fail(&r, TEC_UNSUPPORTED,
                    base_format(cx, "elements of type %s", onnx_type_name(cx, TensorProto->data_type)));
    if (!count(&r))
        return NULL;
    op_constant *constant = base_new(cx, op_constant);
    constant->data = lifted ? from_span(&r, lifted, weights->mapped) : read_data(&r);
    constant->mapped = lifted && weights->mapped;
    constant->bytes = r.bytes;
    for (size_t i = 0; i < TensorProto->n_dims; i++)
        dim[i] = ir_int(cx, TensorProto->dims[i]);
    constant->type = (op_type){r.dtype, (int)TensorProto->n_dims, dim};
    return constant->data ? constant : NULL;
}

/* A file with one serialised tensor, as test suites have them. */
const op_constant *onnx_read_tensor(tec_context *cx, const char *path, const char **name)
{
    size_t size;
    const char *data = base_read_file(cx, path, &size);
    bool good =
        data && onnx_is_shallow(cx, path, &onnx__tensor_proto__descriptor, (const uint8_t *)data, size);
    Onnx__TensorProto *t =
        good ? onnx__tensor_proto__unpack(onnx_allocator(cx), size, (const uint8_t *)data) : NULL;

    if (!data)
        return NULL;
    if (!t)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = path}, "the file is not an ONNX tensor");
    if (name)
        *name = t->name;
    return onnx_tensor(cx, path, NULL, t, "tensor");
}

/* The reverse of onnx_read_tensor. Extents must be constant. */
bool onnx_write_tensor(tec_context *cx, const char *path, const char *name, const op_constant *constant)
{
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;
    int64_t *dims = base_array(cx, int64_t, constant->type.n);

    for (int i = 0; i < constant->type.n; i++)
        if (!ir_is_int(constant->type.dim[i], &dims[i])) {
            base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                      "a tensor with symbolic extents cannot be written");
            return false;
        }
    t.n_dims = (size_t)constant->type.n;
    t.dims = dims;
    t.has_data_type = true;
    t.data_type = onnx_data_type(constant->type.dtype);
    t.name = base_strdup(cx, name ? name : "");
    t.has_raw_data = true;
    t.raw_data = (ProtobufCBinaryData){(size_t)constant->bytes, (uint8_t *)constant->data};
    size_t size = onnx__tensor_proto__get_packed_size(&t);
    uint8_t *bytes = base_alloc(cx, size + 1);
    onnx__tensor_proto__pack(&t, bytes);
    return base_write_file(cx, path, bytes, size);
}
