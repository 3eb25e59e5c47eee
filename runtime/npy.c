/* npy.c -- .npy files: a magic, a version, a header that is a Python dictionary, and the elements.
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *
 * The reader takes the dictionary's three keys in any order, and its input for hostile: the shape must fit
 * the bytes that are there before anything is allocated.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/file.h"
#include "runtime/tensor.h"

enum { PREFIX = 6, MAX_HEADER = 1 << 16 };
static const char magic[PREFIX] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y'};

static const struct {
    uint8_t code, bits;
    char letter; /* of numpy */
} dtypes[] = {
    {kDLBool, 8, 'b'},  {kDLInt, 8, 'i'},    {kDLInt, 16, 'i'},   {kDLInt, 32, 'i'},
    {kDLInt, 64, 'i'},  {kDLUInt, 8, 'u'},   {kDLUInt, 16, 'u'},  {kDLUInt, 32, 'u'},
    {kDLUInt, 64, 'u'}, {kDLFloat, 16, 'f'}, {kDLFloat, 32, 'f'}, {kDLFloat, 64, 'f'},
};

/* ---- the header as text ---- */

/* at <= end; text is not terminated. */
typedef struct {
    const char *at, *end;
} cursor;

/* The flags `has_` say which keys have been seen. */
typedef struct {
    base_dtype dtype;
    bool swapped, fortran;
    int ndim;
    int64_t shape[RT_MAX_RANK];
    bool has_dtype, has_order, has_shape;
} header;

static void skip_space(cursor *at)
{
    while (at->at < at->end && isspace((unsigned char)*at->at))
        at->at++;
}

static bool accept(cursor *at, const char *text)
{
    size_t n = strlen(text);

    skip_space(at);
    if ((size_t)(at->end - at->at) < n || memcmp(at->at, text, n) != 0)
        return false;
    at->at += n;
    return true;
}

/* A quoted text without escapes, into a small buffer. */
static bool read_quoted(cursor *at, char *text, size_t size)
{
    size_t n = 0;
    char quote;

    skip_space(at);
    if (at->at == at->end || (*at->at != '\'' && *at->at != '"'))
        return false;
    for (quote = *at->at++; at->at < at->end && *at->at != quote; at->at++) {
        if (n + 1 >= size)
            return false;
        text[n++] = *at->at;
    }
    text[n] = '\0';
    return at->at++ < at->end;
}

/* Digits only: no sign, as an extent is never negative, and no Python suffix. */
static bool read_extent(cursor *at, int64_t *extent)
{
    const char *begin;

    skip_space(at);
    begin = at->at;
    *extent = 0;
    for (; at->at < at->end && isdigit((unsigned char)*at->at); at->at++)
        if (__builtin_mul_overflow(*extent, (int64_t)10, extent) ||
            __builtin_add_overflow(*extent, (int64_t)(*at->at - '0'), extent))
            return false;
    return at->at > begin;
}

/* (), (3,) and (3, 4): a comma may stand at the end. */
static bool read_shape(cursor *at, header *self)
{
    if (!accept(at, "("))
        return false;
    while (!accept(at, ")")) {
        if (self->ndim == RT_MAX_RANK || !read_extent(at, &self->shape[self->ndim]))
            return false;
        self->ndim++;
        if (!accept(at, ",") && !(at->at < at->end && *at->at == ')'))
            return false;
    }
    self->has_shape = true;
    return true;
}

/* `<f4` is three characters: byte order, letter, bytes. '|' and '=' are this machine's order. */
static bool read_dtype(cursor *at, header *self)
{
    char text[16];

    if (!read_quoted(at, text, sizeof text) || strlen(text) != 3 || !strchr("<>|=", text[0]))
        return false;
    for (int i = 0; i < BASE_COUNT(dtypes); i++)
        if (dtypes[i].letter == text[1] && dtypes[i].bits == 8 * (text[2] - '0')) {
            self->dtype = BASE_DTYPE(dtypes[i].code, dtypes[i].bits, 1);
            self->swapped = text[0] == '>';
            self->has_dtype = true;
        }
    return self->has_dtype;
}

/* One 'key': value of the dictionary; each key may stand there once. */
static bool read_entry(cursor *at, header *self)
{
    char key[16];

    if (!read_quoted(at, key, sizeof key) || !accept(at, ":"))
        return false;
    if (strcmp(key, "descr") == 0 && !self->has_dtype)
        return read_dtype(at, self);
    if (strcmp(key, "shape") == 0 && !self->has_shape)
        return read_shape(at, self);
    if (strcmp(key, "fortran_order") != 0 || self->has_order)
        return false;
    self->fortran = accept(at, "True");
    self->has_order = self->fortran || accept(at, "False");
    return self->has_order;
}

/* All three keys must be there. */
static bool read_dictionary(cursor *at, header *self)
{
    if (!accept(at, "{"))
        return false;
    while (!accept(at, "}"))
        if (!read_entry(at, self) || (!accept(at, ",") && !(at->at < at->end && *at->at == '}')))
            return false;
    return self->has_dtype && self->has_order && self->has_shape;
}

/* ---- reading ---- */

/* The header's text and what follows it. Version 1 has two bytes of length, versions 2 and 3 have four. */
static bool split(const uint8_t *data, size_t size, cursor *text, cursor *elements)
{
    size_t at = PREFIX + 2, length, width;

    if (size < at + 4 || memcmp(data, magic, PREFIX) != 0 || data[6] < 1 || data[6] > 3)
        return false;
    width = data[6] == 1 ? 2 : 4;
    length = data[at] | (size_t)data[at + 1] << 8;
    if (width == 4)
        length |= (size_t)data[at + 2] << 16 | (size_t)data[at + 3] << 24;
    at += width;
    if (length > MAX_HEADER || length > size - at)
        return false;
    *text = (cursor){(const char *)data + at, (const char *)data + at + length};
    *elements = (cursor){text->end, (const char *)data + size};
    return true;
}

/* In place, element by element. */
static void swap_bytes(char *data, int64_t n, int size)
{
    for (int64_t i = 0; i < n; i++, data += size)
        for (int k = 0; k < size / 2; k++) {
            char c = data[k];

            data[k] = data[size - 1 - k];
            data[size - 1 - k] = c;
        }
}

/* The elements as they lie in the file, seen as a tensor of the header's shape. In Fortran order the first
 * index moves fastest, so the strides grow from the left. */
static bool fill(tec_array *array, const header *self, const char *elements, tec_error *err)
{
    DLTensor from = *tec_array_tensor(array);
    int64_t strides[RT_MAX_RANK], step = 1;

    if (tec_tensor_bytes(&from) == 0)
        return true;
    for (int i = 0; i < self->ndim; i++) {
        strides[i] = step;
        step *= self->shape[i];
    }
    from.data = (void *)(uintptr_t)elements;
    from.strides = self->fortran ? strides : NULL;
    if (!tec_tensor_copy(tec_array_tensor(array), &from, err))
        return false;
    if (self->swapped)
        swap_bytes(tec_array_data(array), tec_tensor_elements(&from), base_dtype_bytes(self->dtype));
    return true;
}

/* The array in the file's bytes; big-endian and Fortran order are turned round. */
static tec_array *decode(const char *name, const void *data, size_t size, tec_error *err)
{
    header h = {0};
    cursor text, elements;
    tec_array *array;
    int64_t bytes;

    if (!split(data, size, &text, &elements))
        return rt_fail(err, TEC_INVALID, "%s: not a .npy file of version 1 to 3, or cut off", name), NULL;
    if (!read_dictionary(&text, &h))
        return rt_fail(err, TEC_INVALID, "%s: its header is not one of bool, integers or floats: %.*s", name,
                       (int)(text.end - text.at < 80 ? text.end - text.at : 80), text.at),
               NULL;
    bytes = rt_shape_bytes(h.dtype, h.ndim, h.shape);
    if (bytes < 0 || (int64_t)(elements.end - elements.at) != bytes)
        return rt_fail(err, TEC_INVALID, "%s: has %lld bytes of elements, but its shape needs %lld", name,
                       (long long)(elements.end - elements.at), (long long)bytes),
               NULL;
    array = tec_array_new(h.dtype, h.ndim, h.shape, err);
    if (array && fill(array, &h, elements.at, err))
        return array;
    tec_array_free(array);
    return NULL;
}

/* `data` may be freed afterwards. */
tec_array *tec_npy_decode(const void *data, size_t size, tec_error *err)
{
    return decode("npy", data, size, err);
}

/* NULL with an error that names the file. Opened so that a pipe or device does not block. */
tec_array *tec_npy_read(const char *path, tec_error *err)
{
    struct stat st;
    rt_blob bytes = {0};
    tec_array *array = NULL;

    if (!path)
        return rt_fail(err, TEC_INVALID, "expected the path of a .npy file, found NULL"), NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return rt_fail_io(err, path, "open it", errno), NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        rt_fail(err, TEC_IO, "%s: is not a file", path);
    else if (rt_blob_read(&bytes, &(rt_source){.name = path, .fd = fd}, 0, (uint64_t)st.st_size, err))
        array = decode(path, bytes.data, (size_t)st.st_size, err);
    close(fd);
    rt_blob_free(&bytes);
    return array;
}

/* ---- writing ---- */

/* 0: numpy has no such type, as for bfloat16. */
static char letter_of(base_dtype dtype)
{
    for (int i = 0; i < BASE_COUNT(dtypes); i++)
        if (dtype.lanes == 1 && dtypes[i].code == dtype.code && dtypes[i].bits == dtype.bits)
            return dtypes[i].letter;
    return '\0';
}

/* The header, padded so that the elements begin at a multiple of 64. Version 1, whose length has two bytes:
 * the largest rank fits. */
static void put_header(rt_sink *sink, const DLTensor *tensor, char letter)
{
    char text[640];
    rt_line line = {text, sizeof text, 0};
    uint8_t prefix[PREFIX + 4] = {0};

    rt_put(&line, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
           tensor->dtype.bits == 8 ? '|' : '<', letter, tensor->dtype.bits / 8);
    for (int i = 0; i < tensor->ndim; i++)
        rt_put(&line, i ? ", %lld" : "%lld", (long long)tensor->shape[i]);
    rt_put(&line, tensor->ndim == 1 ? ",), }" : "), }");
    while ((sizeof prefix + line.n + 1) % 64)
        rt_put(&line, " ");
    rt_put(&line, "\n");
    memcpy(prefix, magic, PREFIX);
    prefix[6] = 1;
    prefix[8] = (uint8_t)line.n;
    prefix[9] = (uint8_t)(line.n >> 8);
    rt_sink_put(sink, prefix, sizeof prefix);
    rt_sink_put(sink, text, line.n);
}

/* Writes a draft and renames it. The tensor may be strided. */
bool tec_npy_write(const char *path, const DLTensor *tensor, tec_error *err)
{
    char dtype[24], letter;
    tec_array *compact;
    rt_sink sink;
    bool ok;

    if (!rt_tensor_check(tensor, path, err))
        return false;
    letter = letter_of(tensor->dtype);
    if (!letter)
        return rt_fail(err, TEC_UNSUPPORTED, "%s: a .npy file cannot store %s", path,
                       base_dtype_print(tensor->dtype, dtype, sizeof dtype));
    compact = tec_array_copy(tensor, err);
    ok = compact && rt_sink_open(&sink, path, err);
    if (ok) {
        put_header(&sink, tensor, letter);
        rt_sink_put(&sink, tec_array_data(compact), (size_t)tec_tensor_bytes(tensor));
        ok = rt_sink_close(&sink);
    }
    tec_array_free(compact);
    return ok;
}
