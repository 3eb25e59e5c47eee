/* tools/value.c -- see value.h. The type says how JSON is read: an array is a tensor, a tuple or a list. */
#include "tools/value.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "tools/data.h"

typedef struct {
    tec_context *cx;
    tec_program *p;
    const rt_program_desc *desc;
    const char *path;
} reader;

static tec_object *read_json(const reader *r, int32_t type, const cJSON *j);

static tec_object *refuse(const reader *r, const char *expected, const cJSON *j)
{
    char *text = j ? cJSON_PrintUnformatted(j) : NULL;

    base_fail(r->cx, TEC_INVALID, (base_loc){.file = r->path}, "expected %s, found %.60s", expected,
              text ? text : "nothing");
    cJSON_free(text);
    return NULL;
}

static tec_object *take(const reader *r, tec_object *o, const tec_error *err)
{
    if (!o)
        base_fail(r->cx, err->status, (base_loc){.file = r->path}, "%s", err->text);
    return o;
}

/* ---- tensors ---- */

/* false: the type has no such value, or JSON cannot say its values. */
static bool set_element(void *data, base_dtype t, int64_t i, double v)
{
    bool is_float = t.code == kDLFloat;

    if (!is_float && v != floor(v))
        return false;
    switch (t.bits) {
    case 8: ((int8_t *)data)[i] = (int8_t)(int64_t)v; return !is_float;
    case 16: ((int16_t *)data)[i] = (int16_t)(int64_t)v; return !is_float;
    case 32:
        if (is_float)
            ((float *)data)[i] = (float)v;
        else
            ((int32_t *)data)[i] = (int32_t)(int64_t)v;
        return true;
    case 64:
        if (is_float)
            ((double *)data)[i] = v;
        else
            ((int64_t *)data)[i] = (int64_t)v;
        return true;
    }
    return false;
}

/* The elements of nested arrays, in order; false where they have not the shape. */
static bool fill(DLTensor *t, const cJSON *j, int d, int64_t *at)
{
    const cJSON *item;

    if (d == t->ndim)
        return (cJSON_IsNumber(j) || cJSON_IsBool(j)) &&
               set_element(t->data, t->dtype, (*at)++, cJSON_IsBool(j) ? cJSON_IsTrue(j) : j->valuedouble);
    if (!cJSON_IsArray(j) || cJSON_GetArraySize(j) != t->shape[d])
        return false;
    cJSON_ArrayForEach(item, j)
    {
        if (!fill(t, item, d + 1, at))
            return false;
    }
    return true;
}

static bool fill_flat(DLTensor *t, const cJSON *data)
{
    DLTensor flat = *t;
    int64_t n = tec_tensor_elements(t), at = 0;

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
static tec_object *read_tensor(const reader *r, const rt_type_desc *type, const cJSON *j)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(j, "shape"), *at = j;
    int64_t extents[RT_MAX_RANK] = {0}, i = 0;
    tec_error err = {0};
    DLTensor *t;

    if (cJSON_IsString(j)) {
        t = tool_read(r->cx, j->valuestring);
        return t ? take(r, tec_object_tensor(r->p, t, &err), &err) : NULL;
    }
    if (shape && !read_shape(shape, type->rank, extents))
        return refuse(r, base_format(r->cx, "a shape of %d extents", (int)type->rank), shape);
    for (int d = 0; d < type->rank && !shape; d++, at = at ? at->child : NULL)
        extents[d] = cJSON_IsArray(at) ? cJSON_GetArraySize(at) : 0;
    t = tool_new_tensor(r->cx, type->dtype, type->rank, extents);
    if (shape ? !fill_flat(t, cJSON_GetObjectItemCaseSensitive(j, "data")) : !fill(t, j, 0, &i))
        return refuse(
            r, base_format(r->cx, "numbers in arrays of equal lengths, nested %d deep", (int)type->rank), j);
    return take(r, tec_object_tensor(r->p, t, &err), &err);
}

/* ---- tuples and data ---- */

/* Values of the types; -1 with an error. What was made goes to `out`. */
static int read_parts(const reader *r, const int32_t *types, int n, const cJSON *list, tec_object **out)
{
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != n)
        return refuse(r, base_format(r->cx, "an array of %d values", n), list), -1;
    for (int i = 0; i < n; i++) {
        out[i] = read_json(r, types[i], cJSON_GetArrayItem(list, i));
        if (!out[i]) {
            while (i > 0)
                tec_object_free(out[--i]);
            return -1;
        }
    }
    return n;
}

static tec_object *make(const reader *r, const char *constructor, tec_object **part, int n)
{
    tec_error err = {0};
    tec_object *o = constructor ? tec_object_data(r->p, constructor, part, n, &err)
                                : tec_object_tuple(r->p, part, n, &err);

    for (int i = 0; i < n; i++)
        tec_object_free(part[i]);
    return take(r, o, &err);
}

/* Nil | Cons(T, List): the constructors without fields and with an element and the rest. */
static bool is_list(const reader *r, const rt_type_desc *type, const rt_constructor_desc **nil,
                    const rt_constructor_desc **cons)
{
    const rt_data_desc *d = &r->desc->data[type->data];

    *nil = *cons = NULL;
    for (int i = 0; i < d->n_constructors && d->n_constructors == 2; i++) {
        const rt_constructor_desc *c = &d->constructors[i];

        if (c->n_fields == 0)
            *nil = c;
        else if (c->n_fields == 2 && r->desc->types[c->fields[1]].kind == RT_TYPE_DATA &&
                 r->desc->types[c->fields[1]].data == type->data)
            *cons = c;
    }
    return *nil && *cons;
}

/* From the end, so that no list is too long. */
static tec_object *read_list(const reader *r, const rt_constructor_desc *nil, const rt_constructor_desc *cons,
                             const cJSON *j)
{
    tec_object *rest = make(r, nil->name, NULL, 0), *cell[2];
    const cJSON *item = j->child ? j->child->prev : NULL; /* a list's first item knows its last */

    for (; rest && item; item = item == j->child ? NULL : item->prev) {
        cell[0] = read_json(r, cons->fields[0], item);
        cell[1] = rest;
        rest = cell[0] ? make(r, cons->name, cell, 2) : NULL;
        if (!cell[0])
            tec_object_free(cell[1]);
    }
    return rest;
}

/* A constructor by its name with its fields, or an array where the type is a list. */
static tec_object *read_data(const reader *r, const rt_type_desc *type, const cJSON *j)
{
    const rt_data_desc *d = &r->desc->data[type->data];
    const rt_constructor_desc *nil, *cons;
    const char *name = cJSON_IsString(j)                                 ? j->valuestring
                       : cJSON_IsObject(j) && cJSON_GetArraySize(j) == 1 ? j->child->string
                                                                         : NULL;

    if (cJSON_IsArray(j) && is_list(r, type, &nil, &cons))
        return read_list(r, nil, cons, j);
    for (int i = 0; name && i < d->n_constructors; i++) {
        const rt_constructor_desc *c = &d->constructors[i];
        tec_object **part;

        if (strcmp(c->name, name) != 0)
            continue;
        part = base_array(r->cx, tec_object *, c->n_fields);
        if (cJSON_IsObject(j) ? read_parts(r, c->fields, c->n_fields, j->child, part) < 0 : c->n_fields > 0)
            return cJSON_IsObject(j) ? NULL : refuse(r, base_format(r->cx, "{\"%s\": [...]}", c->name), j);
        return make(r, c->name, part, c->n_fields);
    }
    return refuse(r, base_format(r->cx, "{\"CONSTRUCTOR\": [fields]} of '%s'", d->name), j);
}

static tec_object *read_json(const reader *r, int32_t type, const cJSON *j)
{
    const rt_type_desc *t = &r->desc->types[type];

    if (t->kind == RT_TYPE_TENSOR)
        return read_tensor(r, t, j);
    if (t->kind == RT_TYPE_DATA)
        return read_data(r, t, j);
    if (t->kind != RT_TYPE_TUPLE)
        return refuse(r, "an input that JSON can say: functions cannot be given", j);
    tec_object **part = base_array(r->cx, tec_object *, t->n_parts);
    return read_parts(r, t->parts, t->n_parts, j, part) < 0 ? NULL : make(r, NULL, part, t->n_parts);
}

/* The ending of the name tells JSON from the file of a tensor. */
tec_object *tool_read_value(tec_context *cx, tec_program *p, const rt_program_desc *desc, int32_t type,
                            const char *path)
{
    reader r = {cx, p, desc, path};
    tec_error err = {0};
    size_t size;

    if (!base_ends_with(path, ".json")) {
        const DLTensor *t = tool_read(cx, path);
        return t ? take(&r, tec_object_tensor(p, t, &err), &err) : NULL;
    }
    const char *text = base_read_file(cx, path, &size);
    cJSON *j = text ? cJSON_ParseWithLength(text, size) : NULL;
    if (text && !j)
        return base_fail(cx, TEC_INVALID, (base_loc){.file = path},
                         "no JSON, or values that nest deeper than %d (a list may be written as an array)",
                         CJSON_NESTING_LIMIT);
    tec_object *o = j ? read_json(&r, type, j) : NULL;
    cJSON_Delete(j);
    return o;
}

/* ---- writing ---- */

/* With so many digits that reading gives the same number. JSON has no infinity and no NaN: they become texts.
 * */
static void add_element(tec_context *cx, base_text *out, const DLTensor *t, int64_t i)
{
    const void *data = (const char *)t->data + t->byte_offset;
    base_dtype d = t->dtype;

    if (d.code == kDLBool)
        base_addf(cx, out, "%s", ((const uint8_t *)data)[i] ? "true" : "false");
    else if (d.code == kDLFloat && d.bits >= 32) {
        double v = d.bits == 64 ? ((const double *)data)[i] : (double)((const float *)data)[i];

        base_addf(cx, out, isfinite(v) ? "%.*g" : "\"%.*g\"", d.bits == 64 ? 17 : 9, v);
    } else if (d.code == kDLInt || d.code == kDLUInt) {
        int64_t v = d.bits == 64   ? ((const int64_t *)data)[i]
                    : d.bits == 32 ? ((const int32_t *)data)[i]
                    : d.bits == 16 ? ((const int16_t *)data)[i]
                                   : ((const int8_t *)data)[i];

        base_addf(cx, out, "%lld",
                  (long long)(d.code == kDLUInt && d.bits < 64 ? v & ((1LL << d.bits) - 1) : v));
    } else {
        base_addf(cx, out, "null");
    }
}

static void add_tensor(tec_context *cx, base_text *out, const DLTensor *t, int d, int64_t *at)
{
    if (d == t->ndim) {
        add_element(cx, out, t, (*at)++);
        return;
    }
    base_addf(cx, out, "[");
    for (int64_t i = 0; i < t->shape[d]; i++) {
        base_addf(cx, out, "%s", i ? ", " : "");
        add_tensor(cx, out, t, d + 1, at);
    }
    base_addf(cx, out, "]");
}

/* What is still to be written: a value, or a text. */
typedef struct {
    const tec_object *o;
    const char *text;
} task;

static void later(tec_context *cx, base_vec *stack, const tec_object *o, const char *text)
{
    task *t = base_new(cx, task);

    *t = (task){o, text};
    base_push(cx, stack, t);
}

/* The constructor now; the parts go to the stack, the last one first. */
static void add_parts(tec_context *cx, const tec_program *p, base_text *out, base_vec *stack,
                      const tec_object *o)
{
    const char *constructor = tec_object_constructor(p, o);
    int n = tec_object_n_parts(o);

    if (constructor && n == 0) {
        base_addf(cx, out, "\"%s\"", constructor);
        return;
    }
    if (constructor)
        base_addf(cx, out, "{\"%s\": ", constructor);
    base_addf(cx, out, "[");
    later(cx, stack, NULL, constructor ? "]}" : "]");
    for (int i = n - 1; i >= 0; i--) {
        later(cx, stack, tec_object_part(o, i), NULL);
        if (i > 0)
            later(cx, stack, NULL, ", ");
    }
}

/* With a stack of its own: values may be deep. */
const char *tool_value_text(tec_context *cx, const tec_program *p, const tec_object *o)
{
    base_vec stack = {0};
    base_text out = {0};

    later(cx, &stack, o, NULL);
    while (stack.n) {
        const task *t = stack.at[--stack.n];
        const DLTensor *tensor = tec_object_dltensor(t->o);
        int64_t at = 0;

        if (t->text)
            base_addf(cx, &out, "%s", t->text);
        else if (tensor)
            add_tensor(cx, &out, tensor, 0, &at);
        else
            add_parts(cx, p, &out, &stack, t->o);
    }
    return base_text_str(cx, &out);
}
