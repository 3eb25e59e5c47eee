/* tools/value.c -- see value.h. The type says how JSON is read: an array is a tensor, a tuple or a list. */
#include "tools/value.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "tools/data.h"

typedef struct {
    tec_context *cx;
    const tool_value_home *home;
    const rt_program_desc *desc;
    const char *path;
} reader;

static tool_value *read_json(const reader *in, int32_t type, const cJSON *json);

static tool_value *refuse(const reader *in, const char *expected, const cJSON *json)
{
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;

    base_fail(in->cx, TEC_INVALID, (base_loc){.file = in->path}, "expected %s, found %.60s", expected,
              text ? text : "nothing");
    cJSON_free(text);
    return NULL;
}

static tool_value *take(const reader *in, tool_value *object, const tec_error *err)
{
    if (!object)
        base_fail(in->cx, err->status, (base_loc){.file = in->path}, "%s", err->text);
    return object;
}

/* ---- tensors ---- */

/* false: the type has no such value, or JSON cannot say its values. */
static bool set_element(void *data, base_dtype dtype, int64_t index, double value)
{
    bool is_float = dtype.code == kDLFloat;

    if (!is_float && value != floor(value))
        return false;
    switch (dtype.bits) {
    case 8: ((int8_t *)data)[index] = (int8_t)(int64_t)value; return !is_float;
    case 16: ((int16_t *)data)[index] = (int16_t)(int64_t)value; return !is_float;
    case 32:
        if (is_float)
            ((float *)data)[index] = (float)value;
        else
            ((int32_t *)data)[index] = (int32_t)(int64_t)value;
        return true;
    case 64:
        if (is_float)
            ((double *)data)[index] = value;
        else
            ((int64_t *)data)[index] = (int64_t)value;
        return true;
    }
    return false;
}

/* The elements of nested arrays, in order; false where they have not the shape. */
static bool fill(DLTensor *tensor, const cJSON *json, int dim, int64_t *at)
{
    const cJSON *item;

    if (dim == tensor->ndim)
        return (cJSON_IsNumber(json) || cJSON_IsBool(json)) &&
               set_element(tensor->data, tensor->dtype, (*at)++,
                           cJSON_IsBool(json) ? cJSON_IsTrue(json) : json->valuedouble);
    if (!cJSON_IsArray(json) || cJSON_GetArraySize(json) != tensor->shape[dim])
        return false;
    cJSON_ArrayForEach(item, json)
    {
        if (!fill(tensor, item, dim + 1, at))
            return false;
    }
    return true;
}

/* A list without structure fills the elements in order. */
static bool fill_flat(DLTensor *tensor, const cJSON *data)
{
    DLTensor flat = *tensor;
    int64_t n = tec_tensor_elements(tensor), at = 0;

    flat.ndim = 1;
    flat.shape = &n;
    return fill(&flat, data, 0, &at);
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

/* A file, nested arrays, or an object with shape and data, which can say empty tensors. */
static tool_value *read_tensor(const reader *in, const rt_type_desc *type, const cJSON *json)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(json, "shape"), *at = json;
    int64_t extents[RT_MAX_RANK] = {0}, i = 0;
    tec_error err = {0};
    DLTensor *t;

    if (cJSON_IsString(json)) {
        t = tool_read(in->cx, json->valuestring);
        return t ? take(in, in->home->tensor(in->home->user, t, &err), &err) : NULL;
    }
    if (shape && !read_shape(shape, type->rank, extents))
        return refuse(in, base_format(in->cx, "a shape of %d extents", (int)type->rank), shape);
    for (int d = 0; d < type->rank && !shape; d++, at = at ? at->child : NULL)
        extents[d] = cJSON_IsArray(at) ? cJSON_GetArraySize(at) : 0;
    t = tool_new_tensor(in->cx, type->dtype, type->rank, extents);
    if (shape ? !fill_flat(t, cJSON_GetObjectItemCaseSensitive(json, "data")) : !fill(t, json, 0, &i))
        return refuse(
            in, base_format(in->cx, "numbers in arrays of equal lengths, nested %d deep", (int)type->rank),
            json);
    return take(in, in->home->tensor(in->home->user, t, &err), &err);
}

/* ---- tuples and data ---- */

/* Values of the types; -1 with an error. What was made goes to `out`. */
static int read_parts(const reader *in, const int32_t *types, int count, const cJSON *list, tool_value **out)
{
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != count)
        return refuse(in, base_format(in->cx, "an array of %d values", count), list), -1;
    for (int i = 0; i < count; i++) {
        out[i] = read_json(in, types[i], cJSON_GetArrayItem(list, i));
        if (!out[i]) {
            while (i > 0)
                in->home->drop(in->home->user, out[--i]);
            return -1;
        }
    }
    return count;
}

/* A tuple where `data` is NULL. The parts belong to the new object from here on. */
static tool_value *make(const reader *in, const rt_data_desc *data, const char *constructor,
                        tool_value **part, int n)
{
    tec_error err = {0};
    if (data)
        constructor = base_format(in->cx, "%s.%s", data->name, constructor);
    tool_value *o = in->home->compound(in->home->user, constructor, part, n, &err);

    for (int i = 0; i < n; i++)
        in->home->drop(in->home->user, part[i]);
    return take(in, o, &err);
}

/* Nil | Cons(T, List): the constructors without fields and with an element and the rest. */
static bool is_list(const reader *in, const rt_type_desc *type, const rt_constructor_desc **nil,
                    const rt_constructor_desc **cons)
{
    const rt_data_desc *d = &in->desc->data[type->data];

    *nil = *cons = NULL;
    for (int i = 0; i < d->n_constructors && d->n_constructors == 2; i++) {
        const rt_constructor_desc *constructor = &d->constructors[i];

        if (constructor->n_fields == 0)
            *nil = constructor;
        else if (constructor->n_fields == 2 && in->desc->types[constructor->fields[1]].kind == RT_TYPE_DATA &&
                 in->desc->types[constructor->fields[1]].data == type->data)
            *cons = constructor;
    }
    return *nil && *cons;
}

/* From the end, so that no list is too long. */
static tool_value *read_list(const reader *in, const rt_data_desc *data, const rt_constructor_desc *nil,
                             const rt_constructor_desc *cons, const cJSON *json)
{
    tool_value *rest = make(in, data, nil->name, NULL, 0), *cell[2];
    const cJSON *item = json->child ? json->child->prev : NULL; /* a list's first item knows its last */

    for (; rest && item; item = item == json->child ? NULL : item->prev) {
        cell[0] = read_json(in, cons->fields[0], item);
        cell[1] = rest;
        rest = cell[0] ? make(in, data, cons->name, cell, 2) : NULL;
        if (!cell[0])
            in->home->drop(in->home->user, cell[1]);
    }
    return rest;
}

/* A constructor by its name with its fields, or an array where the type is a list. */
static tool_value *read_data(const reader *in, const rt_type_desc *type, const cJSON *json)
{
    const rt_data_desc *d = &in->desc->data[type->data];
    const rt_constructor_desc *nil, *cons;
    const char *name = cJSON_IsString(json)                                    ? json->valuestring
                       : cJSON_IsObject(json) && cJSON_GetArraySize(json) == 1 ? json->child->string
                                                                               : NULL;

    if (cJSON_IsArray(json) && is_list(in, type, &nil, &cons))
        return read_list(in, d, nil, cons, json);
    for (int i = 0; name && i < d->n_constructors; i++) {
        const rt_constructor_desc *constructor = &d->constructors[i];
        tool_value **part;

        if (strcmp(constructor->name, name) != 0)
            continue;
        part = base_array(in->cx, tool_value *, constructor->n_fields);
        if (cJSON_IsObject(json)
                ? read_parts(in, constructor->fields, constructor->n_fields, json->child, part) < 0
                : constructor->n_fields > 0)
            return cJSON_IsObject(json)
                       ? NULL
                       : refuse(in, base_format(in->cx, "{\"%s\": [...]}", constructor->name), json);
        return make(in, d, constructor->name, part, constructor->n_fields);
    }
    return refuse(in, base_format(in->cx, "{\"CONSTRUCTOR\": [fields]} of '%s'", d->name), json);
}

/* Guided by the type: the same JSON may be a tuple, a tensor or a value of a data type. */
static tool_value *read_json(const reader *in, int32_t type, const cJSON *json)
{
    const rt_type_desc *t = &in->desc->types[type];

    if (t->kind == RT_TYPE_TENSOR)
        return read_tensor(in, t, json);
    if (t->kind == RT_TYPE_DATA)
        return read_data(in, t, json);
    if (t->kind != RT_TYPE_TUPLE)
        return refuse(in, "a value that JSON can express: a function cannot be an input", json);
    tool_value **part = base_array(in->cx, tool_value *, t->n_parts);
    return read_parts(in, t->parts, t->n_parts, json, part) < 0 ? NULL
                                                                : make(in, NULL, NULL, part, t->n_parts);
}

/* The ending of the name tells JSON from the file of a tensor. */
tool_value *tool_read_value(tec_context *cx, const tool_value_home *home, const rt_program_desc *desc,
                            int32_t type, const char *path)
{
    reader r = {cx, home, desc, path};
    tec_error err = {0};
    size_t size;

    if (!base_ends_with(path, ".json")) {
        const DLTensor *t = tool_read(cx, path);
        return t ? take(&r, home->tensor(home->user, t, &err), &err) : NULL;
    }
    const char *text = base_read_file(cx, path, &size);
    cJSON *j = text ? cJSON_ParseWithLength(text, size) : NULL;
    if (text && !j)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                         "the text is not JSON, or its values are nested more than %d deep (a list may be "
                         "written as an array)",
                         CJSON_NESTING_LIMIT);
    tool_value *object = j ? read_json(&r, type, j) : NULL;
    cJSON_Delete(j);
    return object;
}

/* ---- writing ---- */

/* With so many digits that reading gives the same number. JSON has no infinity and no NaN: they become texts.
 * */
static void add_element(tec_context *cx, base_text *out, const DLTensor *tensor, int64_t index)
{
    const void *data = (const char *)tensor->data + tensor->byte_offset;
    base_dtype d = tensor->dtype;

    if (d.code == kDLBool)
        base_addf(cx, out, "%s", ((const uint8_t *)data)[index] ? "true" : "false");
    else if (d.code == kDLFloat && d.bits >= 32) {
        double v = d.bits == 64 ? ((const double *)data)[index] : (double)((const float *)data)[index];

        base_addf(cx, out, isfinite(v) ? "%.*g" : "\"%.*g\"", d.bits == 64 ? 17 : 9, v);
    } else if (d.code == kDLInt || d.code == kDLUInt) {
        int64_t v = d.bits == 64   ? ((const int64_t *)data)[index]
                    : d.bits == 32 ? ((const int32_t *)data)[index]
                    : d.bits == 16 ? ((const int16_t *)data)[index]
                                   : ((const int8_t *)data)[index];

        base_addf(cx, out, "%lld",
                  (long long)(d.code == kDLUInt && d.bits < 64 ? v & ((1LL << d.bits) - 1) : v));
    } else {
        base_addf(cx, out, "null");
    }
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

/* What is still to be written: a value, or a text. */
typedef struct {
    tool_value *value;
    const char *text;
} task;

static void later(tec_context *cx, base_vec *stack, tool_value *value, const char *text)
{
    task *t = base_new(cx, task);

    *t = (task){value, text};
    base_push(cx, stack, t);
}

/* The constructor now; the parts go to the stack, the last one first. */
static void add_parts(tec_context *cx, base_text *out, base_vec *stack, const tool_value_seen *seen)
{
    if (seen->constructor && seen->n == 0) {
        base_addf(cx, out, "\"%s\"", seen->constructor);
        return;
    }
    if (seen->constructor)
        base_addf(cx, out, "{\"%s\": ", seen->constructor);
    base_addf(cx, out, "[");
    later(cx, stack, NULL, seen->constructor ? "]}" : "]");
    for (int i = seen->n - 1; i >= 0; i--) {
        later(cx, stack, seen->part[i], NULL);
        if (i > 0)
            later(cx, stack, NULL, ", ");
    }
}

/* false: the value could not be seen. */
static bool add_value(tec_context *cx, const tool_value_home *home, base_text *out, base_vec *stack,
                      const tool_value *value)
{
    tool_value_seen seen = {0};
    tec_error err = {0};
    int64_t at = 0;

    if (!home->look(home->user, value, &seen, &err))
        return base_fail(cx, err.status, (base_loc){0}, "%s", err.text);
    if (seen.tensor)
        add_tensor(cx, out, seen.tensor, 0, &at);
    else
        add_parts(cx, out, stack, &seen);
    return true;
}

/* With a stack of its own: values may be deep. Parts are dropped as soon as they are written, or when an
 * error leaves them unwritten. */
const char *tool_value_text(tec_context *cx, const tool_value_home *home, const tool_value *value)
{
    base_vec stack = {0};
    base_text out = {0};
    bool good = add_value(cx, home, &out, &stack, value);

    while (stack.n) {
        const task *t = stack.at[--stack.n];

        if (t->text) {
            base_addf(cx, &out, "%s", t->text);
            continue;
        }
        good = good && add_value(cx, home, &out, &stack, t->value);
        home->drop(home->user, t->value);
    }
    return good ? base_text_str(cx, &out) : NULL;
}
