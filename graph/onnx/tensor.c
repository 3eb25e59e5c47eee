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

int32_t onnx_data_type(base_dtype t)
{
    for (int i = 0; i < BASE_COUNT(dtypes); i++)
        if (base_dtype_same(dtypes[i].dtype, t))
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

static void *fail(const reader *r, tec_status status, const char *text)
{
    return base_fail(r->cx, status, (base_loc){.file = r->path}, "tensor '%s': %s",
                     r->t->name && *r->t->name ? r->t->name : r->what, text);
}

/* Elements and bytes of the tensor, each checked for overflow: the dimensions come from a file. */
static bool count(reader *r)
{
    r->elements = 1;
    if (r->t->n_dims > ONNX_MAX_RANK) {
        fail(r, TEC_UNSUPPORTED,
             base_format(r->cx, "%zu dimensions; at most %d", r->t->n_dims, ONNX_MAX_RANK));
        return false;
    }
    for (size_t i = 0; i < r->t->n_dims; i++)
        if (r->t->dims[i] < 0 || __builtin_mul_overflow(r->elements, r->t->dims[i], &r->elements)) {
            fail(r, TEC_INVALID,
                 base_format(r->cx, "extent %lld in dimension %zu", (long long)r->t->dims[i], i));
            return false;
        }
    if (__builtin_mul_overflow(r->elements, (int64_t)base_dtype_bytes(r->dtype), &r->bytes)) {
        fail(r, TEC_INVALID, "its size overflows");
        return false;
    }
    return true;
}

/* Elements that stand in a typed field of `n` values of `size` bytes, each narrowed to the dtype. */
static void *from_field(const reader *r, const void *field, size_t n, size_t size)
{
    size_t width = (size_t)base_dtype_bytes(r->dtype);

    if ((int64_t)n != r->elements)
        return fail(r, TEC_INVALID,
                    base_format(r->cx, "%lld elements expected, %zu found", (long long)r->elements, n));
    char *data = base_alloc(r->cx, (size_t)r->bytes + 1);
    for (size_t i = 0; i < n; i++)
        memcpy(data + i * width, (const char *)field + i * size, width < size ? width : size);
    return data;
}

static void *from_typed_fields(const reader *r)
{
    const Onnx__TensorProto *t = r->t;

    if (base_is_float(r->dtype) && r->dtype.bits == 32)
        return from_field(r, t->float_data, t->n_float_data, sizeof(float));
    if (base_is_float(r->dtype) && r->dtype.bits == 64)
        return from_field(r, t->double_data, t->n_double_data, sizeof(double));
    if (base_dtype_same(r->dtype, BASE_I64))
        return from_field(r, t->int64_data, t->n_int64_data, sizeof(int64_t));
    if (r->dtype.code == kDLUInt && r->dtype.bits >= 32)
        return from_field(r, t->uint64_data, t->n_uint64_data, sizeof(uint64_t));
    return from_field(r, t->int32_data, t->n_int32_data, sizeof(int32_t));
}

static const char *entry(const Onnx__TensorProto *t, const char *key)
{
    for (size_t i = 0; i < t->n_external_data; i++)
        if (base_same(t->external_data[i]->key, key))
            return t->external_data[i]->value;
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
static int open_beside(const reader *r, const char *name)
{
    const char *slash = strrchr(r->path, '/');
    int at = open(slash ? base_format(r->cx, "%.*s", (int)(slash - r->path) + 1, r->path) : ".",
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    while (at >= 0) {
        size_t n = strcspn(name, "/");
        bool last = !name[n + strspn(name + n, "/")];
        /* Without O_NONBLOCK, opening a FIFO would wait for somebody to write into it. */
        int next = openat(at, base_strndup(r->cx, name, n),
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
static bool read_bytes(const reader *r, const char *key, int64_t *out)
{
    const char *text = entry(r->t, key);
    char *end;

    *out = 0;
    if (!text)
        return true;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno)
        return true;
    fail(r, TEC_INVALID,
         base_format(r->cx, "the %s of its data is '%s', expected a number of bytes", key, text));
    return false;
}

/* Reads r->bytes bytes at an offset of an open file. */
static void *read_at(const reader *r, int fd, const char *name, int64_t at)
{
    char *data = base_alloc(r->cx, (size_t)r->bytes + 1);

    for (int64_t n = 0; n < r->bytes;) {
        ssize_t got = pread(fd, data + n, (size_t)(r->bytes - n), at + n);

        if (got == 0 || (got < 0 && errno != EINTR))
            return fail(r, TEC_IO,
                        base_format(r->cx, "cannot read '%s': %s", name,
                                    got ? strerror(errno) : "it ends too early"));
        n += got > 0 ? got : 0;
    }
    return data;
}

/* Data beside the model: the place must lie in the file and be as long as the type asks for. */
static void *from_open_file(const reader *r, int fd, const char *name)
{
    int64_t at, length;
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return fail(r, TEC_INVALID,
                    base_format(r->cx, "its data lies in '%s', which is no regular file", name));
    if (!read_bytes(r, "offset", &at) || !read_bytes(r, "length", &length))
        return NULL;
    if (entry(r->t, "length") && length != r->bytes)
        return fail(r, TEC_INVALID,
                    base_format(r->cx, "%lld bytes expected, %lld stand in '%s'", (long long)r->bytes,
                                (long long)length, name));
    if (at > st.st_size || st.st_size - at < r->bytes)
        return fail(r, TEC_INVALID,
                    base_format(r->cx, "'%s' has %lld bytes, %lld are expected at %lld", name,
                                (long long)st.st_size, (long long)r->bytes, (long long)at));
    return read_at(r, fd, name, at);
}

/* A regular file in or under the folder of the model. */
static void *from_file(const reader *r)
{
    const char *name = entry(r->t, "location");

    if (!stays_beside(name))
        return fail(
            r, TEC_INVALID,
            base_format(r->cx, "its data lies in '%s', which is no file beside the model", name ? name : ""));
    int fd = open_beside(r, name);
    if (fd < 0)
        return errno == ELOOP
                   ? fail(r, TEC_INVALID,
                          base_format(r->cx, "its data lies in '%s', which is a symbolic link", name))
                   : fail(r, TEC_IO,
                          base_format(r->cx, "cannot open '%s' beside the model: %s", name, strerror(errno)));
    void *data = from_open_file(r, fd, name);
    close(fd);
    return data;
}

static void *read_data(const reader *r)
{
    if (r->t->data_location == 1)
        return from_file(r);
    if (!r->t->has_raw_data)
        return r->elements || r->t->n_int32_data || r->t->n_float_data ? from_typed_fields(r)
                                                                       : base_alloc(r->cx, 1);
    if ((int64_t)r->t->raw_data.len != r->bytes)
        return fail(
            r, TEC_INVALID,
            base_format(r->cx, "%lld bytes expected, %zu found", (long long)r->bytes, r->t->raw_data.len));
    return r->bytes ? base_copy(r->cx, r->t->raw_data.data, r->t->raw_data.len) : base_alloc(r->cx, 1);
}

/* The tensor as a constant in the context; NULL with an error. `what` and the tensor's name are for messages.
 */
const op_constant *onnx_tensor(tec_context *cx, const char *path, const Onnx__TensorProto *t,
                               const char *what)
{
    reader r = {.cx = cx, .path = path, .what = what, .t = t};
    const ir_expr **dim = base_array(cx, const ir_expr *, t->n_dims);

    if (!onnx_dtype(t->data_type, &r.dtype))
        return fail(&r, TEC_UNSUPPORTED,
                    base_format(cx, "elements of type %s", onnx_type_name(cx, t->data_type)));
    if (!count(&r))
        return NULL;
    op_constant *c = base_new(cx, op_constant);
    c->data = read_data(&r);
    c->bytes = r.bytes;
    for (size_t i = 0; i < t->n_dims; i++)
        dim[i] = ir_int(cx, t->dims[i]);
    c->type = (op_type){r.dtype, (int)t->n_dims, dim};
    return c->data ? c : NULL;
}

/* A file with one serialised tensor, as test suites have them. */
const op_constant *onnx_read_tensor(tec_context *cx, const char *path, const char **name)
{
    size_t size;
    const char *data = base_read_file(cx, path, &size);
    bool good = data && onnx_is_shallow(&onnx__tensor_proto__descriptor, (const uint8_t *)data, size);
    Onnx__TensorProto *t =
        good ? onnx__tensor_proto__unpack(onnx_allocator(cx), size, (const uint8_t *)data) : NULL;

    if (!data)
        return NULL;
    if (!t)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = path}, "this is no ONNX tensor");
    if (name)
        *name = t->name;
    return onnx_tensor(cx, path, t, "tensor");
}

/* The reverse of onnx_read_tensor. Extents must be constant. */
bool onnx_write_tensor(tec_context *cx, const char *path, const char *name, const op_constant *c)
{
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;
    int64_t *dims = base_array(cx, int64_t, c->type.n);

    for (int i = 0; i < c->type.n; i++)
        if (!ir_is_int(c->type.dim[i], &dims[i])) {
            base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                      "a tensor with symbolic extents cannot be written");
            return false;
        }
    t.n_dims = (size_t)c->type.n;
    t.dims = dims;
    t.has_data_type = true;
    t.data_type = onnx_data_type(c->type.dtype);
    t.name = base_strdup(cx, name ? name : "");
    t.has_raw_data = true;
    t.raw_data = (ProtobufCBinaryData){(size_t)c->bytes, (uint8_t *)c->data};
    size_t size = onnx__tensor_proto__get_packed_size(&t);
    uint8_t *bytes = base_alloc(cx, size + 1);
    onnx__tensor_proto__pack(&t, bytes);
    return base_write_file(cx, path, bytes, size);
}
