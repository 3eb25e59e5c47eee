/* tools/json.c -- see json.h. */
#include "tools/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/format.h"
#include "tec/runtime.h"
#include "tools/data.h"

/* ---- places and errors ---- */

/* How many steps a path shows at its begin and at its end. */
enum { FIRST_STEPS = 4, LAST_STEPS = 6 };

/* Collected from the part outwards, as steps know what is around them, and written from the whole inwards. */
const char *tool_json_path(tec_context *cx, const tool_json_step *at)
{
    base_vec steps = {0}; /* from the part out to the whole */
    base_text out = {0};

    for (; at; at = at->outer)
        base_push(cx, &steps, at);
    for (int i = steps.n - 1; i >= 0; i--) {
        const tool_json_step *step = steps.at[i];

        if (steps.n > FIRST_STEPS + LAST_STEPS && i == steps.n - 1 - FIRST_STEPS) {
            i = LAST_STEPS;
            base_add(cx, &out, ".."); /* the next step begins with a dot, or with a bracket */
        } else if (!step->outer) {
            base_add(cx, &out, step->name);
        } else {
            base_addf(cx, &out, "%s%s", step->name ? "." : "", step->name ? step->name : "");
            if (step->index >= 0)
                base_addf(cx, &out, "[%d]", step->index);
        }
    }
    return base_text_str(cx, &out);
}

void *tool_refuse_value(tec_context *cx, const tool_json_place *place, const char *expected,
                        const char *found)
{
    return base_fail(cx, TEC_INVALID, (base_loc){.file = place->file}, "%s%sexpected %s, found %s",
                     place->at ? tool_json_path(cx, place->at) : "", place->at ? ": " : "", expected, found);
}

void *tool_refuse_json(tec_context *cx, const tool_json_place *place, const char *expected, const cJSON *json)
{
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;

    tool_refuse_value(cx, place, expected, base_format(cx, "%.60s", text ? text : "nothing"));
    cJSON_free(text);
    return NULL;
}

/* ---- the text ---- */

/* The end of a string, whose first quote `text` is behind. */
static const char *skip_string(const char *text, const char *end)
{
    while (text < end && *text != '"')
        text += *text == '\\' && text + 1 < end ? 2 : 1;
    return text;
}

/* How arrays and objects are nested in a text. */
typedef struct {
    int most, open;       /* the depth; how many are not closed at the end */
    const char *too_deep; /* where cJSON takes no more; NULL: nowhere */
} nesting;

/* Brackets in strings are text. Which bracket closes which is not compared: the text may be no JSON. */
static nesting nesting_of(const char *text, const char *end)
{
    nesting out = {0};

    for (; text < end; text++) {
        if (*text == '"')
            text = skip_string(text + 1, end);
        else if (*text == '[' || *text == '{')
            out.open++;
        else if (*text == ']' || *text == '}')
            out.open--;
        if (out.open > CJSON_NESTING_LIMIT && !out.too_deep)
            out.too_deep = text;
        out.most = out.open > out.most ? out.open : out.most;
    }
    return out;
}

static int line_of(const char *text, const char *at)
{
    int line = 1;

    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

enum { MOST_SHOWN = 20 }; /* characters of a text that is no JSON */

/* Why cJSON refused the text. Of a text that ends too early, its error is at the last character. */
static cJSON *refuse_text(tec_context *cx, const char *path, const char *text, const char *end)
{
    const char *wrong = cJSON_GetErrorPtr();
    nesting found = nesting_of(text, end);
    base_loc loc = {.file = path};

    if (found.too_deep) {
        loc.line = line_of(text, found.too_deep);
        return base_fail(cx, TEC_UNSUPPORTED, loc,
                         "the values are nested %d deep; JSON files are read to a depth of %d, the limit of "
                         "cJSON: write a list as an array, [1, 2, 3], or make deeper values by the C API "
                         "(tec_object_data)",
                         found.most, CJSON_NESTING_LIMIT);
    }
    while (end > text && strchr(" \t\r\n", end[-1]))
        end--;
    wrong = wrong < text || wrong > end ? end : wrong;
    loc.line = line_of(text, wrong);
    if (wrong + 1 >= end && (found.open > 0 || wrong == end))
        return base_fail(cx, TEC_INVALID, loc, "the text is not JSON: it ends too early");
    wrong += strspn(wrong, " \t\r\n");
    loc.line = line_of(text, wrong);
    int shown = (int)strcspn(wrong, "\r\n");
    return base_fail(cx, TEC_INVALID, loc, "the text is not JSON from '%.*s' on",
                     shown < MOST_SHOWN ? shown : MOST_SHOWN, wrong);
}

cJSON *tool_parse_json(tec_context *cx, const char *path)
{
    size_t size;
    const char *text = base_read_file(cx, path, &size);
    cJSON *json = text ? cJSON_ParseWithLength(text, size) : NULL;

    return json || !text ? json : refuse_text(cx, path, text, text + size);
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
static void *refuse(tec_context *cx, const tool_json_place *place, const DLTensor *tensor, const cJSON *wrong)
{
    const char *type = base_dtype_text(cx, tensor->dtype),
               *expected = tensor->ndim == 0
                               ? base_format(cx, "a value of %s", type)
                               : base_format(cx, "values of %s in arrays of equal lengths, nested %d deep",
                                             type, tensor->ndim);

    return tool_refuse_json(cx, place, expected, wrong);
}

/* The lengths of the first arrays are the extents, where the JSON does not say its shape. An object lists
 * its elements in row-major order, without arrays inside. */
DLTensor *tool_json_tensor(tec_context *cx, const tool_json_place *place, const cJSON *json, base_dtype dtype,
                           int rank)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(json, "shape"), *at = json;
    int64_t extents[RT_MAX_RANK] = {0}, count = 0;

    if (shape && !read_shape(shape, rank, extents))
        return tool_refuse_json(cx, place, base_format(cx, "a shape of %d extents from 0 on", rank), shape);
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
    return json && !wrong ? tensor : refuse(cx, place, &flat, wrong);
}

DLTensor *tool_read_json(tec_context *cx, const char *path, base_dtype dtype, int rank)
{
    cJSON *json = tool_parse_json(cx, path);
    DLTensor *tensor =
        json ? tool_json_tensor(cx, &(tool_json_place){.file = path}, json, dtype, rank) : NULL;

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
