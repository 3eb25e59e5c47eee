/* tools/json.c -- see json.h. */
#include "tools/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/format.h"
#include "tec/runtime.h"
#include "tools/data.h"

void *tool_refuse_json(tec_context *cx, const char *path, const char *expected, const cJSON *json)
{
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;

    base_fail(cx, TEC_INVALID, (base_loc){.file = path}, "expected %s, found %.60s", expected,
              text ? text : "nothing");
    cJSON_free(text);
    return NULL;
}

cJSON *tool_parse_json(tec_context *cx, const char *path)
{
    size_t size;
    const char *text = base_read_file(cx, path, &size);
    cJSON *json = text ? cJSON_ParseWithLength(text, size) : NULL;

    if (text && !json)
        base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                  "the text is not JSON, or its values are nested more than %d deep (a list may be "
                  "written as an array)",
                  CJSON_NESTING_LIMIT);
    return json;
}

/* ---- elements ---- */

/* false: the type holds an infinity in the place of the number. */
static bool set_float(void *data, base_dtype dtype, int64_t index, double value)
{
    uint16_t *half = (uint16_t *)data + index;
    double held = value;

    if (dtype.bits == 64) {
        ((double *)data)[index] = value;
    } else if (dtype.bits == 32) {
        ((float *)data)[index] = (float)value;
        held = (double)(float)value;
    } else if (dtype.code == kDLBfloat) {
        *half = base_double_to_bfloat(value);
        held = (double)base_bfloat_to_float(*half);
    } else {
        *half = base_double_to_half(value);
        held = (double)base_half_to_float(*half);
    }
    return !isinf(held) || isinf(value);
}

/* false: the number is no integer, or outside of the type. */
static bool set_integer(void *data, base_dtype dtype, int64_t index, double value)
{
    bool is_signed = dtype.code == kDLInt;
    int bits = base_is_bool(dtype) ? 1 : dtype.bits > 53 ? 53 + is_signed : dtype.bits;
    double end = ldexp(1, bits - is_signed);

    if (value != floor(value) || value >= end || value < (is_signed ? -end : 0))
        return false;
    int64_t number = (int64_t)value;
    switch (base_dtype_bytes(dtype)) {
    case 1: ((int8_t *)data)[index] = (int8_t)number; return true;
    case 2: ((int16_t *)data)[index] = (int16_t)number; return true;
    case 4: ((int32_t *)data)[index] = (int32_t)number; return true;
    case 8: ((int64_t *)data)[index] = number; return true;
    }
    return false;
}

static bool is_float(base_dtype dtype)
{
    return dtype.code == kDLFloat || dtype.code == kDLBfloat;
}

/* A number, true or false; of floats also "inf", "-inf" and "nan". */
static bool set_element(DLTensor *tensor, int64_t index, const cJSON *json)
{
    bool text = cJSON_IsString(json) && is_float(tensor->dtype);
    char *end = text ? json->valuestring : NULL;
    double value = text                 ? strtod(json->valuestring, &end)
                   : cJSON_IsBool(json) ? cJSON_IsTrue(json)
                                        : json->valuedouble;

    if (text ? end == json->valuestring || *end || isfinite(value)
             : !(cJSON_IsNumber(json) || cJSON_IsBool(json)) || isinf(value))
        return false;
    return is_float(tensor->dtype) ? set_float(tensor->data, tensor->dtype, index, value)
                                   : set_integer(tensor->data, tensor->dtype, index, value);
}

/* ---- reading ---- */

/* The elements of nested arrays, in order, counted by `at`. The first that does not fit its place. */
static const cJSON *fill(DLTensor *tensor, const cJSON *json, int dim, int64_t *at)
{
    const cJSON *item, *wrong = NULL;

    if (dim == tensor->ndim)
        return set_element(tensor, (*at)++, json) ? NULL : json;
    if (!cJSON_IsArray(json) || cJSON_GetArraySize(json) != tensor->shape[dim])
        return json;
    cJSON_ArrayForEach(item, json)
    {
        wrong = fill(tensor, item, dim + 1, at);
        if (wrong)
            break;
    }
    return wrong;
}

static bool read_shape(const cJSON *list, int rank, int64_t *shape)
{
    for (int d = 0; d < rank; d++) {
        const cJSON *n = cJSON_GetArrayItem(list, d);

        if (!cJSON_IsNumber(n) || n->valuedouble < 0 || n->valuedouble > 1e9)
            return false;
        shape[d] = (int64_t)n->valuedouble;
    }
    return cJSON_GetArraySize(list) == rank;
}

/* What was wrong with `wrong`: an element, or an array of another length than its neighbours. */
static void *refuse(tec_context *cx, const char *path, const DLTensor *tensor, const cJSON *wrong)
{
    const char *type = base_dtype_text(cx, tensor->dtype),
               *expected = tensor->ndim == 0
                               ? base_format(cx, "a value of %s", type)
                               : base_format(cx, "values of %s in arrays of equal lengths, nested %d deep",
                                             type, tensor->ndim);

    return tool_refuse_json(cx, path, expected, wrong);
}

/* The lengths of the first arrays are the extents, where the JSON does not say its shape. An object lists
 * its elements in row-major order, without arrays inside. */
DLTensor *tool_json_tensor(tec_context *cx, const char *path, const cJSON *json, base_dtype dtype, int rank)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(json, "shape"), *at = json;
    int64_t extents[RT_MAX_RANK] = {0}, count = 0;

    if (shape && !read_shape(shape, rank, extents))
        return tool_refuse_json(cx, path, base_format(cx, "a shape of %d extents from 0 on", rank), shape);
    for (int d = 0; d < rank && !shape; d++, at = at ? at->child : NULL)
        extents[d] = cJSON_IsArray(at) ? cJSON_GetArraySize(at) : 0;
    DLTensor *tensor = tool_new_tensor(cx, dtype, rank, extents);
    if (!tensor)
        return NULL;
    DLTensor flat = *tensor;
    int64_t elements = tec_tensor_elements(tensor);
    if (shape) {
        json = cJSON_GetObjectItemCaseSensitive(json, "data");
        flat.ndim = 1;
        flat.shape = &elements;
    }
    const cJSON *wrong = json ? fill(&flat, json, 0, &count) : NULL;
    return json && !wrong ? tensor : refuse(cx, path, &flat, wrong);
}

DLTensor *tool_read_json(tec_context *cx, const char *path, base_dtype dtype, int rank)
{
    cJSON *json = tool_parse_json(cx, path);
    DLTensor *tensor = json ? tool_json_tensor(cx, path, json, dtype, rank) : NULL;

    cJSON_Delete(json);
    return tensor;
}

/* ---- writing ---- */

static void add_float(tec_context *cx, base_text *out, base_dtype dtype, const void *data, int64_t index)
{
    uint16_t half = dtype.bits == 16 ? ((const uint16_t *)data)[index] : 0;
    double value = dtype.bits == 64          ? ((const double *)data)[index]
                   : dtype.bits == 32        ? (double)((const float *)data)[index]
                   : dtype.code == kDLBfloat ? (double)base_bfloat_to_float(half)
                                             : (double)base_half_to_float(half);

    base_addf(cx, out, isfinite(value) ? "%.*g" : "\"%.*g\"", dtype.bits == 64 ? 17 : 9, value);
}

/* By the bytes that an element takes: i4 and u1 take a byte each. */
static void add_integer(tec_context *cx, base_text *out, base_dtype dtype, const void *data, int64_t index)
{
    bool is_signed = dtype.code == kDLInt;

    switch (base_dtype_bytes(dtype)) {
    case 1:
        base_addf(cx, out, "%d", is_signed ? ((const int8_t *)data)[index] : ((const uint8_t *)data)[index]);
        return;
    case 2:
        base_addf(cx, out, "%d",
                  is_signed ? ((const int16_t *)data)[index] : ((const uint16_t *)data)[index]);
        return;
    case 4:
        base_addf(cx, out, "%lld",
                  is_signed ? (long long)((const int32_t *)data)[index]
                            : (long long)((const uint32_t *)data)[index]);
        return;
    default: base_addf(cx, out, is_signed ? "%lld" : "%llu", (long long)((const int64_t *)data)[index]);
    }
}

static void add_element(tec_context *cx, base_text *out, const DLTensor *tensor, int64_t index)
{
    const void *data = (const char *)tensor->data + tensor->byte_offset;

    if (base_is_bool(tensor->dtype))
        base_addf(cx, out, "%s", ((const uint8_t *)data)[index] ? "true" : "false");
    else if (is_float(tensor->dtype))
        add_float(cx, out, tensor->dtype, data, index);
    else
        add_integer(cx, out, tensor->dtype, data, index);
}

static void add_tensor(tec_context *cx, base_text *out, const DLTensor *tensor, int dim, int64_t *at)
{
    if (dim == tensor->ndim) {
        add_element(cx, out, tensor, (*at)++);
        return;
    }
    base_addf(cx, out, "[");
    for (int64_t i = 0; i < tensor->shape[dim]; i++) {
        base_addf(cx, out, "%s", i ? ", " : "");
        add_tensor(cx, out, tensor, dim + 1, at);
    }
    base_addf(cx, out, "]");
}

void tool_write_json(tec_context *cx, base_text *out, const DLTensor *tensor)
{
    int64_t at = 0;

    add_tensor(cx, out, tensor, 0, &at);
}
