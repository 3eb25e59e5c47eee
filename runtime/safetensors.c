/* safetensors.c -- the weights of a large module as a .safetensors file beside it.
 *
 * The format knows no holes: the bytes that align a tensor are themselves tensors of bytes, "pad.N". The
 * header is padded with spaces, so that the data begin on a page. Tools of others can read the file; the
 * module needs only offset and checksums.
 *
 *     8 bytes: length of the header | {"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}} | data
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/file.h"

/* NULL where the format has no name for the type; its bytes are then stored as U8. */
static const char *dtype_name(base_dtype type)
{
    const struct {
        base_dtype dtype;
        const char *name;
    } names[] = {
        {BASE_F64, "F64"}, {BASE_F32, "F32"}, {BASE_F16, "F16"},   {BASE_BF16, "BF16"}, {BASE_I64, "I64"},
        {BASE_I32, "I32"}, {BASE_I16, "I16"}, {BASE_I8, "I8"},     {BASE_U64, "U64"},   {BASE_U32, "U32"},
        {BASE_U16, "U16"}, {BASE_U8, "U8"},   {BASE_BOOL, "BOOL"},
    };

    for (int i = 0; i < BASE_COUNT(names); i++)
        if (base_dtype_same(names[i].dtype, type))
            return names[i].name;
    return NULL;
}

static void add_text(rt_bytes *out, const char *text)
{
    rt_bytes_add(out, text, strlen(text));
}

static void add_number(rt_bytes *out, uint64_t v)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, v);
    add_text(out, digits);
}

/* Other bytes stay as they are: names are UTF-8. */
static void add_escaped(rt_bytes *out, const char *name)
{
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        char escape[8];

        if (c == '"' || c == '\\' || c < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", c);
            add_text(out, escape);
        } else {
            rt_bytes_add(out, name, 1);
        }
    }
}

/* Two constants of one name would make the file unreadable: the later one has its number added. */
static bool name_is_taken(const rt_module_desc *module, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (base_same(module->constants[k].name, module->constants[i].name))
            return true;
    return false;
}

/* "__metadata__" is the format's own member. */
static void add_name(rt_bytes *out, const rt_module_desc *module, int32_t i)
{
    const char *name = module->constants[i].name;

    add_escaped(out, name ? name : "constant");
    if (!name || strcmp(name, "__metadata__") == 0 || name_is_taken(module, i)) {
        add_text(out, ".");
        add_number(out, (uint64_t)i);
    }
}

/* Ends a member; offsets count from the start of the data. */
static void add_range(rt_bytes *out, uint64_t begin, uint64_t end)
{
    add_text(out, "],\"data_offsets\":[");
    add_number(out, begin);
    add_text(out, ",");
    add_number(out, end);
    add_text(out, "]}");
}

/* One member of the header: "name":{"dtype":...,"shape":...,"data_offsets":[begin,end]}. */
static void add_constant(rt_bytes *out, const rt_module_desc *module, int32_t index, uint64_t begin,
                         uint64_t end)
{
    const rt_constant_desc *constant = &module->constants[index];
    const char *dtype = dtype_name(constant->dtype);

    add_text(out, ",\"");
    add_name(out, module, index);
    add_text(out, "\":{\"dtype\":\"");
    add_text(out, dtype ? dtype : "U8");
    add_text(out, "\",\"shape\":[");
    for (int32_t d = 0; dtype && d < constant->rank; d++) {
        add_text(out, d ? "," : "");
        add_number(out, (uint64_t)constant->shape[d]);
    }
    if (!dtype)
        add_number(out, end - begin);
    add_range(out, begin, end);
}

/* A name of its own for each constant before which bytes are left. */
static void add_padding(rt_bytes *out, int32_t i, uint64_t begin, uint64_t end)
{
    add_text(out, ",\"pad.");
    add_number(out, (uint64_t)i);
    add_text(out, "\":{\"dtype\":\"U8\",\"shape\":[");
    add_number(out, end - begin);
    add_range(out, begin, end);
}

/* All constants in the order in which the module has them. */
static void add_header(rt_bytes *out, const rt_module_desc *module)
{
    uint64_t end = 0;

    add_text(out, "{\"__metadata__\":{\"format\":\"tec\"}");
    for (int32_t i = 0; i < module->n_constants; i++) {
        uint64_t size = (uint64_t)rt_constant_bytes(&module->constants[i]);
        uint64_t at = size ? rt_weight_next(end) : end;

        if (at > end)
            add_padding(out, i, end, at);
        add_constant(out, module, i, at, at + size);
        end = at + size;
    }
    add_text(out, "}");
}

/* The length word and the header, together a whole number of pages. The length is filled in last, when it is
 * known. */
static bool make_head(const rt_module_desc *module, rt_bytes *head, tec_error *err)
{
    uint8_t length[8] = {0};

    rt_bytes_add(head, length, sizeof length);
    add_header(head, module);
    while (!head->failed && head->n % RT_PAGE)
        add_text(head, " ");
    if (head->failed)
        return rt_fail_memory(err, head->cap);
    for (int i = 0; i < 8; i++)
        head->data[i] = (uint8_t)((uint64_t)(head->n - 8) >> 8 * i);
    return true;
}

/* Writes the weights beside the module; *beside is what the module keeps of them. */
bool rt_safetensors_write(const rt_module_desc *module, const char *path, rt_beside *beside, tec_error *err)
{
    rt_bytes head = {0};
    rt_sink sink;
    bool padded, ok = make_head(module, &head, err) && rt_sink_open(&sink, path, err);

    if (ok) {
        rt_sink_put(&sink, head.data, head.n);
        rt_sink_put_weights(&sink, module);
        *beside = (rt_beside){.offset = head.n,
                              .size = rt_weights_size(module),
                              .checksum = rt_weights_checksum(module, NULL, &padded),
                              .head_checksum = rt_checksum(head.data, head.n)};
        ok = rt_sink_close(&sink);
    }
    rt_bytes_free(&head);
    return ok;
}
